package ranks

import (
	"errors"
	"fmt"
	"strings"

	"gm/internal/units"
)

// Problems names what is missing and what is left out, a line each.
func (j *Job) Problems() []string {
	var all []string
	if len(j.Missing) > 0 {
		all = append(all, fmt.Sprintf("no trace of %s, of %s", Names(j.Missing), units.Count(j.World, "rank")))
	}
	for _, l := range j.Left {
		all = append(all, fmt.Sprintf("%s is left out: %s", l.File, l.Reason))
	}
	if len(j.Clocks) > 0 {
		all = append(all, "other clocks on "+Names(j.Clocks)+": what was recorded there overlaps in time with no other rank, or with few")
	}
	return all
}

// Incomplete returns an error if ranks are missing, files are left out or clocks differ; nil if the job is whole.
func (j *Job) Incomplete() error {
	what := j.lacks()
	if n := len(j.Clocks); n > 0 {
		what = append(what, "other clocks on "+units.Count(n, "rank"))
	}
	return j.fault(what)
}

// Lacks does so for what does not compare the times of ranks: clocks may differ.
func (j *Job) Lacks() error { return j.fault(j.lacks()) }

func (j *Job) lacks() (what []string) {
	if n := len(j.Missing); n > 0 {
		what = append(what, fmt.Sprintf("%d of %s missing", n, units.Count(j.World, "rank")))
	}
	if n := len(j.Left); n > 0 {
		what = append(what, fmt.Sprintf("%d of %s left out", n, units.Count(n+len(j.Members), "file")))
	}
	return what
}

func (j *Job) fault(what []string) error {
	if len(what) == 0 {
		return nil
	}
	return errors.New(j.Folder + ": " + strings.Join(what, ", "))
}

// Name returns a rank as text, such as "rank 3".
func Name(rank int64) string {
	if rank < 0 {
		return "an unknown rank"
	}
	return fmt.Sprintf("rank %d", rank)
}

// Names returns ranks, in ascending order, as text, such as "rank 3" or "ranks 0-7, 12".
func Names(ranks []int64) string {
	if len(ranks) == 1 {
		return Name(ranks[0])
	}
	return "ranks " + Numbers(ranks)
}

// Numbers returns ranks, in ascending order, as text, such as "0-7, 12".
func Numbers(ranks []int64) string {
	var parts []string
	for i := 0; i < len(ranks); {
		end := i
		for end+1 < len(ranks) && ranks[end+1] == ranks[end]+1 {
			end++
		}
		text := fmt.Sprint(ranks[i])
		if ranks[i] < 0 {
			text = "?"
		}
		if end > i {
			text += fmt.Sprintf("-%d", ranks[end])
		}
		parts = append(parts, text)
		i = end + 1
	}
	if len(parts) > maxNamed {
		parts = append(parts[:maxNamed], "...")
	}
	return strings.Join(parts, ", ")
}

// maxNamed is how many stretches of ranks are named.
const maxNamed = 12
