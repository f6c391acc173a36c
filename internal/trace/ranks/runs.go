package ranks

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"gm/formats/column"
	"gm/formats/trace"
)

// begun is a trace and the time of its first row.
type begun struct {
	*Member
	startNS int64
}

// chooseRun returns the traces of one run where a command was run several times into the same folder: some rank is then there twice, and the
// times at which the traces begin lie in groups that are apart. It returns all if they do not.
func (j *Job) chooseRun(all []*Member) ([]*Member, error) {
	if distinct(all) == len(all) {
		return all, nil
	}
	traces, err := j.begin(all)
	if err != nil {
		return nil, err
	}
	from, to, ok := longestRun(traces)
	if !ok {
		return members(traces), nil
	}
	for i, b := range traces {
		if i < from || i >= to {
			apart := time.Duration(b.startNS - traces[from].startNS)
			word := "after"
			if apart < 0 {
				apart, word = -apart, "before"
			}
			j.Left = append(j.Left, Left{b.File, fmt.Sprintf("of another run: it begins %s %s the run that is shown", rough(apart), word)})
		}
	}
	return members(traces[from:to]), nil
}

func members(traces []begun) (all []*Member) {
	for _, b := range traces {
		all = append(all, b.Member)
	}
	return all
}

func rowsOf(traces []begun) (rows int64) {
	for _, b := range traces {
		rows += b.Rows
	}
	return rows
}

// distinct counts ranks. Traces without a rank count as one each.
func distinct(all []*Member) int {
	seen := map[int64]bool{}
	without := 0
	for _, m := range all {
		if m.Rank < 0 {
			without++
		} else {
			seen[m.Rank] = true
		}
	}
	return len(seen) + without
}

// rough rounds a duration to some three digits.
func rough(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit)
}

// begin reads when traces begin, and sorts them by that. Those whose first rows cannot be read are left out.
func (j *Job) begin(all []*Member) ([]begun, error) {
	var traces []begun
	for _, m := range all {
		startNS, err := m.start()
		if err != nil {
			j.Left = append(j.Left, Left{m.File, reason(err, m.path)})
			continue
		}
		traces = append(traces, begun{m, startNS})
	}
	slices.SortFunc(traces, func(a, b begun) int { return cmp.Or(cmp.Compare(a.startNS, b.startNS), cmp.Compare(a.File, b.File)) })
	return traces, nil
}

// start returns the time of the first row, 0 if there is none.
func (m *Member) start() (startNS int64, err error) {
	source, err := column.OpenSource(m.path)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	return trace.ReadSource(source, func(r *trace.Reader) (int64, error) {
		switch b, err := r.Next(); {
		case err == io.EOF:
			return 0, nil
		case err != nil:
			return 0, err
		default:
			return b.TimeNS[0], nil
		}
	})
}

// longestRun cuts traces, in the order of time, at the longest pauses until none has a rank twice, and returns the part with most ranks; of several,
// the one with most rows. It is not ok if that is no run by itself: some rank is missing there, and the pauses around it are no longer than
// the time in which its own traces began.
func longestRun(traces []begun) (from, to int, ok bool) {
	total := distinct(members(traces))
	most := 0
	for _, cut := range apart(traces, 0) {
		of := traces[cut.from:cut.to]
		n := distinct(members(of))
		if n > most || n == most && rowsOf(of) > rowsOf(traces[from:to]) {
			most, from, to = n, cut.from, cut.to
		}
	}
	if most == total {
		return from, to, true
	}
	within := traces[to-1].startNS - traces[from].startNS
	alone := (from == 0 || traces[from].startNS-traces[from-1].startNS > within) && (to == len(traces) || traces[to].startNS-traces[to-1].startNS > within)
	return from, to, alone && 2*most > total
}

type stretch struct{ from, to int }

// apart returns the parts of traces, which begin at an index.
func apart(traces []begun, at int) []stretch {
	if distinct(members(traces)) == len(traces) {
		return []stretch{{at, at + len(traces)}}
	}
	cut, longest := 1, int64(-1)
	for i := 1; i < len(traces); i++ {
		if pause := traces[i].startNS - traces[i-1].startNS; pause > longest {
			cut, longest = i, pause
		}
	}
	return append(apart(traces[:cut], at), apart(traces[cut:], at+cut)...)
}
