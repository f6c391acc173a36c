package layout

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gm/formats/trace"
	"gm/internal/dsa"
)

// script writes a trace from words: +ID:SIZE is an alloc, -ID a free, # a row of the driver. Bars enclose the window.
func script(t *testing.T, words string) (read func() *trace.Reader, w Window) {
	t.Helper()
	var b trace.Batch
	var bars []int64
	for _, word := range strings.Fields(words) {
		e := trace.Event{TimeNS: int64(b.Len())}
		switch word[0] {
		case '|':
			bars = append(bars, int64(b.Len()))
			continue
		case '#':
			e.Op, e.Level, e.Size = trace.OpSample, trace.LevelDriver, 1
		case '+':
			e.Op = trace.OpAlloc
			if _, err := fmt.Sscanf(word, "+%d:%d", &e.ID, &e.Size); err != nil {
				t.Fatal(word, err)
			}
		case '-':
			e.Op = trace.OpFree
			if _, err := fmt.Sscanf(word, "-%d", &e.ID); err != nil {
				t.Fatal(word, err)
			}
		}
		b.Append(e)
	}
	write := func(w *trace.Writer) error { return w.Write(&b) }
	return func() *trace.Reader { return open(t, write) }, Window{bars[0], bars[1]}
}

func TestPeriodic(t *testing.T) {
	for _, c := range []struct {
		name   string
		script string
		want   string // the tensors of each arena, and which inherits
		ends   string // in circular time: the lives of the tensors to place, in positions, and the period
	}{
		{"all within", "+1:8 | +2:8 +3:8 -2 -3 | +4:8", "resident 1, iteration 2 3", "[1 3) [2 4)"},
		{"into the next", "+1:8 | +2:8 -2 +3:8 | +4:8 -4 -3", "resident 1, iteration 2 3", "[1 2) [3 6) mod 3"},
		{"a whole period", "+1:8 | +2:8 +3:8 -2 | +4:8 -3 +5:8", "resident 1, iteration 2 3", "[1 3) [2 5) mod 3"},
		{"more than a period", "+1:8 | +2:8 +3:8 -2 | +4:8 -4 -3 +5:8", "resident 1 3, iteration 2", "[1 3)"},
		{"never freed", "+1:8 | +2:8 -2 +3:8 | +4:8", "resident 1 3, iteration 2", "[1 2)"},
		{"inherited", "+1:8 +2:8 | +3:8 -2 -3 +4:8 | +5:8 -4", "resident 1, iteration 2 3 4, 2=4", "[2 4) [5 7) mod 4"},
		{"freed earlier in the next", "+2:8 | +3:8 -3 -2 +4:8 | +5:8 -4", "resident 2, iteration 3 4", "[1 2) [4 6) mod 4"},
		{"another size", "+2:16 | +3:8 -2 -3 +4:8 | +5:8 -4", "resident 2, iteration 3 4", "[1 3) [4 6) mod 4"},
		{"two for one", "+1:8 +2:8 | +3:8 -2 -1 -3 +4:8 | +5:8 -5 -4", "iteration 1 3 4, resident 2, 1=4", "[2 5) [6 9) mod 5"},
		{"the second of two", "+1:8 +2:8 | +3:8 -2 -1 +4:8 +5:8 | +6:8 -4 -6 -5", "iteration 1 2 4 5, resident 3, 1=5 2=4", "[5 8) [6 10) mod 5"},
		{"rows of the driver's in the window", "+1:8 | +2:8 # # # -2 +3:8 | +4:8 -3", "resident 1, iteration 2 3", "[1 2) [3 5) mod 3"},
		{"and after it", "+1:8 | +2:8 +3:8 -2 | # +4:8 -3 +5:8", "resident 1 3, iteration 2", "[1 3)"},
		{"fewer than a period", "+1:8 | +2:8 -2 +3:8 | # +4:8 -3 +5:8", "resident 1, iteration 2 3", "[1 2) [3 6) mod 3"},
	} {
		read, w := script(t, c.script)
		tensors, err := Collect(read())
		if err != nil {
			t.Fatal(err)
		}
		var ends string
		o := Options{Window: &w, Periodic: true, Align: 8}
		o.Search = func(ctx context.Context, s dsa.Solver, tasks []Task) ([]dsa.Layout, error) {
			for _, task := range tasks {
				if task.Arena == "d0.iteration" {
					ends = lives(task.Problem)
				}
			}
			return untilEnd(ctx, s, tasks)
		}
		p, err := Solve(t.Context(), tensors, o)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got := members(p, newCycle(tensors, &o)); got != c.want || ends != c.ends {
			t.Errorf("%s:\n%s; %s, expected\n%s; %s", c.name, got, ends, c.want, c.ends)
		}
		if p.Meta.Period != w.Hi-w.Lo {
			t.Errorf("%s: period %d", c.name, p.Meta.Period)
		}
		checked(t, p, read())
	}
}

// lives returns the lives of a problem's buffers, and its period.
func lives(p *dsa.Problem) string {
	var all []string
	for i := range p.Size {
		all = append(all, fmt.Sprintf("[%d %d)", p.Start[i], p.End[i]))
	}
	if p.Period > 0 {
		all = append(all, fmt.Sprintf("mod %d", p.Period))
	}
	return strings.Join(all, " ")
}

// members lists the ids in the arenas of a plan, and for those that inherit a place the id of the heir.
func members(p *Plan, c *cycle) string {
	lists := make([]string, len(p.Arenas))
	var heirs []string
	for k, i := range p.Member {
		lists[p.Arena[k]] += fmt.Sprintf(" %d", p.Tensors.ID[i])
		if heir, ok := c.heirs[int(i)]; ok {
			at, _ := slices.BinarySearch(p.Member, int32(heir))
			if p.Offset[k] == p.Offset[at] {
				heirs = append(heirs, fmt.Sprintf("%d=%d", p.Tensors.ID[i], p.Tensors.ID[heir]))
			}
		}
	}
	for i := range lists {
		lists[i] = strings.TrimPrefix(p.Arenas[i].Name, "d0.") + lists[i]
	}
	if heirs != nil {
		lists = append(lists, strings.Join(heirs, " "))
	}
	return strings.Join(lists, ", ")
}

// Three tensors that overlap in pairs around the circle need three places, although only two live at any time.
func TestPeriodicBound(t *testing.T) {
	read, w := script(t, "+1:8 | +2:8 -1 +3:8 -2 +4:8 -3 | +5:8 -4")
	tensors, err := Collect(read())
	if err != nil {
		t.Fatal(err)
	}
	p, err := Solve(t.Context(), tensors, Options{Window: &w, Periodic: true, Align: 8})
	if err != nil {
		t.Fatal(err)
	}
	if p.Meta.Peak != 24 || p.Meta.LowerBound != 24 || !p.Meta.Optimal {
		t.Errorf("peak %d, at least %d", p.Meta.Peak, p.Meta.LowerBound)
	}
	checked(t, p, read())
}
