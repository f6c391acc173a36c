package ranks_test

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gm/internal/trace/ranks"
)

// TestLaunchers has commands in which each process is told its rank.
func TestLaunchers(t *testing.T) {
	for _, option := range []string{"--local_rank=%d", "--local-rank %d", "--rank=%d", "--rank %d", "--node_rank=%d", "--node-rank %d"} {
		folder := t.TempDir()
		for rank := range int64(4) {
			job{rank: rank, world: 4, pid: 7, size: 1000, command: "train.py " + fmt.Sprintf(option, rank) + " --batch 2"}.write(t, folder)
		}
		if j, table := read(t, folder); j.Incomplete() != nil || len(table.Ranks) != 4 {
			t.Errorf("%s: %d ranks: %v", option, len(table.Ranks), j.Problems())
		}
		job{rank: 3, world: 4, pid: 7, size: 1000, command: "train.py " + fmt.Sprintf(option, 3) + " --batch 4"}.write(t, folder)
		if j, _ := read(t, folder); len(j.Left) != 1 || j.Left[0].Reason != "of another job: of 4 ranks, train.py --batch 4; most traces here are: of 4 ranks, train.py --batch 2" {
			t.Errorf("%s: left out: %v", option, j.Left)
		}
	}
}

// TestSources has traces that differ in what they were made from, which may or may not differ between ranks of one job.
func TestSources(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"synthetic: llama-7b,ranks=4", "synthetic: opt-13b,ranks=4", false},
		{"synthetic: llama-7b,ranks=4", "synthetic: llama-7b,ranks=4 --strategy R", false},
		{"synthetic: llama-7b,ranks=4,batch=1,seq=4Ki,stage=0", "synthetic: llama-7b,ranks=4,rank=2,batch=2,seq=1Ki,stage=1", true},
		{"pytorch snapshot a.pickle", "pytorch snapshot b.pickle", true},
	} {
		folder := t.TempDir()
		for rank := range int64(4) {
			of := job{rank: rank, world: 4, pid: 7, size: 1000, source: c.a}
			if rank >= 2 {
				of.source = c.b
			}
			of.write(t, folder)
		}
		j, table := read(t, folder)
		if c.same && (len(table.Ranks) != 4 || j.Incomplete() != nil) {
			t.Errorf("%s, %s: %v", c.a, c.b, j.Problems())
		}
		if !c.same && (len(table.Ranks) != 2 || len(j.Left) != 2 || !strings.Contains(j.Left[0].Reason, c.b+"; most traces here are: of 4 ranks, "+c.a)) {
			t.Errorf("%s, %s: %d ranks, left out: %v", c.a, c.b, len(table.Ranks), j.Left)
		}
	}
}

// second is a second in nanoseconds.
const second = 1e9

// run writes traces of ranks of a job of four, which begin one tenth of a second after the other. Each has its own number of sizes.
func run(t *testing.T, folder string, pid int, startNS int64, of ...int64) {
	for i, rank := range of {
		job{rank: rank, world: 4, pid: pid, size: 1000 * int64(pid), command: "train.py", start: startNS + int64(i)*second/10}.write(t, folder)
	}
}

// TestRuns has several runs of one command in a folder. What is shown is of one of them.
func TestRuns(t *testing.T) {
	for name, c := range map[string]struct {
		write func(folder string)
		pid   int64 // of the run that is shown
		ranks []int64
		left  string // a reason
	}{
		"two": {func(folder string) {
			run(t, folder, 7, 0, 0, 1, 2, 3)
			run(t, folder, 8, 60*second, 3, 2, 1, 0)
		}, 7, []int64{0, 1, 2, 3}, "of another run: it begins 1m0"},
		"one of a rank that failed": {func(folder string) {
			run(t, folder, 7, 0, 0, 2, 3)
			run(t, folder, 8, 60*second, 1, 0, 2, 3)
		}, 8, []int64{0, 1, 2, 3}, "s before the run that is shown"},
		"each without another rank": {func(folder string) {
			run(t, folder, 7, 0, 0, 2, 3)
			run(t, folder, 8, 60*second, 1, 0, 2)
		}, 7, []int64{0, 2, 3}, "of another run: it begins 1m0"},
		"three": {func(folder string) {
			run(t, folder, 7, 0, 0, 1)
			run(t, folder, 8, 60*second, 1, 0, 2)
			run(t, folder, 9, 120*second, 1)
		}, 8, []int64{0, 1, 2}, "s before the run that is shown"},
		"a rank that was started again": {func(folder string) {
			run(t, folder, 7, 0, 0, 1, 2, 3)
			run(t, folder, 8, 20*second, 2)
		}, 7, []int64{0, 1, 2, 3}, "of another run: it begins 20s after the run that is shown"},
		"a process beside its rank": {func(folder string) {
			run(t, folder, 7, 0, 0, 1, 2, 3)
			run(t, folder, 8, 2*second/10+1, 2)
		}, 7, []int64{0, 1, 2, 3}, "rank 2 is there twice"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			c.write(folder)
			j, err := ranks.Open(folder)
			if err != nil {
				t.Fatal(err)
			}
			var got []int64
			for _, m := range j.Members {
				if got = append(got, m.Rank); filepath.Base(filepath.Dir(m.File)) != fmt.Sprintf("pid=%d", c.pid) {
					t.Errorf("%s is shown", m.File)
				}
			}
			if !slices.Equal(got, c.ranks) {
				t.Errorf("ranks %d, want %d", got, c.ranks)
			}
			if len(j.Left) == 0 || !strings.Contains(j.Left[0].Reason, c.left) {
				t.Errorf("left out: %v, want %q", j.Left, c.left)
			}
			if j.Incomplete() == nil {
				t.Error("no error")
			}
		})
	}
}

// TestParts has the stages of a pipeline, by the names of folders and by the source of synthetic traces.
func TestParts(t *testing.T) {
	stage := func(rank int64) int64 { return rank / 2 }
	for name, c := range map[string]struct {
		source string
		folder func(rank int64) string
		want   []ranks.Parts
	}{
		"folders": {"", func(rank int64) string { return fmt.Sprintf("stage=%d", stage(rank)) },
			[]ranks.Parts{{What: "stage", Count: 2, Least: ranks.Part{Number: 1, Mean: 1100}, Most: ranks.Part{Number: 0, Mean: 5600}, Within: 500. / 5600}}},
		"experts": {"", func(rank int64) string { return fmt.Sprintf("expert=%d", stage(rank)) },
			[]ranks.Parts{{What: "expert", Count: 2, Least: ranks.Part{Number: 1, Mean: 1100}, Most: ranks.Part{Number: 0, Mean: 5600}, Within: 500. / 5600}}},
		"synthetic": {"synthetic: llama-65b,ranks=2,pp=2 --strategy R", func(int64) string { return "" },
			[]ranks.Parts{{What: "stage", Count: 2, Least: ranks.Part{Number: 1, Mean: 1100}, Most: ranks.Part{Number: 0, Mean: 5600}, Within: 500. / 5600}}},
		"not said":        {"synthetic: llama-65b,ranks=4", func(int64) string { return "" }, []ranks.Parts{}},
		"said by some":    {"", func(rank int64) string { return []string{"stage=0", "", "stage=1", "stage=1"}[rank] }, []ranks.Parts{}},
		"one stage alone": {"", func(int64) string { return "stage=0" }, []ranks.Parts{}},
	} {
		folder := t.TempDir()
		for rank, size := range []int64{5000, 6000, 1000, 1000} {
			job{rank: int64(rank), world: 4, pid: 7, size: size, source: c.source}.write(t, filepath.Join(folder, c.folder(int64(rank))))
		}
		if _, table := read(t, folder); !reflect.DeepEqual(table.Parts, c.want) {
			t.Errorf("%s: %+v, want %+v", name, table.Parts, c.want)
		}
	}
}
