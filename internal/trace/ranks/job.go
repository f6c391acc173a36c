// Package ranks reads the traces of a job's ranks, which gmtrace run writes into one folder, as one object.
//
// The folder is listed and the metadata of each file is read first. The traces are then read one at a time, or a few at once, so that
// memory does not grow with the number of ranks beyond what is kept of each.
package ranks

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gm/formats/column"
	"gm/formats/trace"
)

// Job is the ranks of one job.
type Job struct {
	Folder  string
	Members []*Member // by rank; traces without a rank last, by name
	World   int64     // ranks of the job; 0 if no trace says
	Missing []int64   // ranks of which there is no trace that could be read
	Left    []Left    // files that are not part of the job
	Clocks  []int64   // ranks whose traces lie wholly before or behind those of most
}

// Member is the trace of one rank.
type Member struct {
	Index int    // in the job's Members
	File  string // its name below the job's folder
	Rank  int64  // -1 if unknown
	Rows  int64
	Meta  trace.Meta

	path  string
	times times
}

// Key tells the trace of a rank from those of the job's others, and is the same in another run: the rank, or the file's name where there is none.
func (m *Member) Key() string {
	if m.Rank < 0 {
		return m.File
	}
	return fmt.Sprint("rank ", m.Rank)
}

// Path returns the name of the member's file.
func (m *Member) Path() string { return m.path }

// Left is a file that is left out.
type Left struct {
	File   string `json:"file"`
	Reason string `json:"reason"`
}

// IsFolder reports whether a name is that of a folder.
func IsFolder(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// Open lists the traces below a folder: files that end in .parquet. Files that cannot be read, or belong to another job than most do, are
// left out, and so are those of another run of the same command. It is an error if no trace is left.
func Open(folder string) (*Job, error) {
	j := &Job{Folder: folder, Left: []Left{}}
	var all []*Member
	snapshot := "" // the first, where there are any
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && snapshot == "" && filepath.Ext(strings.TrimSuffix(path, ".gz")) == ".pickle" {
			snapshot = path
		}
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".parquet" {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		m, err := describe(path, name)
		if err != nil {
			j.Left = append(j.Left, Left{name, reason(err, path)})
			return nil
		}
		all = append(all, m)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", folder, err)
	}
	if err := j.choose(all); err != nil {
		return nil, fmt.Errorf("%s: %w", folder, err)
	}
	j.finish()
	if len(j.Members) == 0 {
		if snapshot != "" && len(j.Left) == 0 {
			return nil, fmt.Errorf("%s: holds snapshots and no traces: `gmtrace import %s -o JOB/rank=0/trace.parquet`, and so on for each rank, makes JOB a job's folder", folder, snapshot)
		}
		return nil, fmt.Errorf("%s: holds no trace that can be read%s", folder, j.first())
	}
	return j, nil
}

// first names the first file that is left out; "" if none is.
func (j *Job) first() string {
	if len(j.Left) == 0 {
		return ", no file that ends in .parquet: gmtrace run -o " + j.Folder + "/ writes such a folder"
	}
	return fmt.Sprintf(": %s: %s", j.Left[0].File, j.Left[0].Reason)
}

// describe reads the metadata of a trace.
func describe(path, name string) (*Member, error) {
	source, err := column.OpenSource(path)
	if err != nil {
		return nil, err
	}
	defer source.Close()
	r, err := trace.NewReader(source, source.Size(), path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	m := &Member{File: name, Rank: -1, Rows: r.Rows(), Meta: r.Meta(), path: path}
	m.times.start, m.times.end, m.times.known = r.Range("time_ns")
	if m.Meta.WorldSize > 0 {
		m.Rank = m.Meta.Rank
	} else if rank, ok := hive(name, "rank"); ok {
		if n, err := strconv.ParseInt(rank, 10, 32); err == nil {
			m.Rank = max(n, -1)
		}
	}
	return m, nil
}

// hive returns the value of a key in the folders of a name, such as host=a/rank=3/pid=7/trace.parquet.
func hive(name, key string) (value string, ok bool) {
	for part := range strings.SplitSeq(filepath.ToSlash(filepath.Dir(name)), "/") {
		if value, ok = strings.CutPrefix(part, key+"="); ok {
			return value, true
		}
	}
	return "", false
}

// reason is an error without the name of its file.
func reason(err error, path string) string {
	text := err.Error()
	for _, prefix := range []string{"trace " + path + ": ", "open " + path + ": ", path + ": "} {
		text = strings.TrimPrefix(text, prefix)
	}
	return text
}

// choose keeps the traces of the job of which there are most, of its runs the one with most ranks, and of each rank the one with the most rows.
func (j *Job) choose(all []*Member) error {
	count := map[belongs]int{}
	for _, m := range all {
		count[m.job()]++
	}
	var most belongs
	for i, m := range all { // in the order of names: the first of those with as many traces
		if i == 0 || count[m.job()] > count[most] {
			most = m.job()
		}
	}
	if len(all) > 1 && count[most] == 1 && most.world == 0 {
		return fmt.Errorf("no two of its traces are ranks of one job: name one, such as %s", all[0].Path())
	}
	var of []*Member
	for _, m := range all {
		if m.job() == most {
			of = append(of, m)
		} else {
			j.Left = append(j.Left, Left{m.File, fmt.Sprintf("of another job: %s; most traces here are: %s", m.job(), most)})
		}
	}
	of, err := j.chooseRun(of)
	if err != nil {
		return err
	}
	j.chooseLongest(of)
	j.World = most.world
	return nil
}

// chooseLongest keeps of each rank the trace with the most rows.
func (j *Job) chooseLongest(all []*Member) {
	at := map[int64]int{} // in Members, by rank
	for _, m := range all {
		i, ok := at[m.Rank]
		if !ok || m.Rank < 0 {
			at[m.Rank] = len(j.Members)
			j.Members = append(j.Members, m)
			continue
		}
		if kept := j.Members[i]; kept.Rows < m.Rows {
			j.Members[i], m = m, kept
		}
		kept := j.Members[i]
		j.Left = append(j.Left, Left{m.File, fmt.Sprintf("rank %d is there twice: %s has %d rows, this has %d", m.Rank, kept.File, kept.Rows, m.Rows)})
	}
}

// finish sorts what there is, and finds what is missing.
func (j *Job) finish() {
	rank := func(m *Member) uint64 { return uint64(m.Rank) } // -1 is the largest
	slices.SortFunc(j.Members, func(a, b *Member) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.File, b.File))
	})
	slices.SortFunc(j.Left, func(a, b Left) int { return cmp.Compare(a.File, b.File) })
	there := map[int64]bool{}
	for i, m := range j.Members {
		m.Index = i
		there[m.Rank] = true
	}
	j.Missing = []int64{}
	for rank := range min(j.World, maxWorld) {
		if !there[rank] {
			j.Missing = append(j.Missing, rank)
		}
	}
	j.clocks()
}

// maxWorld bounds the ranks of a job, as gmtrace run does.
const maxWorld = 1 << 20
