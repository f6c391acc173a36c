package ranks

import (
	"errors"
	"fmt"
	"strings"
)

// Problems names what is missing and what is left out, a line each.
func (j *Job) Problems() []string {
	var all []string
	if len(j.Missing) > 0 {
		all = append(all, fmt.Sprintf("no trace of %s, of %d ranks", Names(j.Missing), j.World))
	}
	for _, l := range j.Left {
		all = append(all, fmt.Sprintf("%s is left out: %s", l.File, l.Reason))
	}
	if len(j.Clocks) > 0 {
		all = append(all, "the clock differs of "+Names(j.Clocks)+": the trace overlaps in time with those of no other rank, or of few")
	}
	return all
}

// Incomplete returns an error if ranks are missing, files are left out or clocks differ; nil if the job is whole.
func (j *Job) Incomplete() error {
	var what []string
	if n := len(j.Missing); n > 0 {
		what = append(what, fmt.Sprintf("%d of %d ranks missing", n, j.World))
	}
	if n := len(j.Left); n > 0 {
		what = append(what, fmt.Sprintf("%d of %d files left out", n, n+len(j.Members)))
	}
	if n := len(j.Clocks); n > 0 {
		what = append(what, fmt.Sprintf("clocks of %d ranks differ", n))
	}
	if len(what) == 0 {
		return nil
	}
	return errors.New(j.Folder + ": " + strings.Join(what, ", "))
}

// Names returns ranks, in ascending order, as text, such as "rank 3" or "ranks 0-7, 12".
func Names(ranks []int64) string {
	if len(ranks) == 1 {
		return fmt.Sprintf("rank %d", ranks[0])
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
