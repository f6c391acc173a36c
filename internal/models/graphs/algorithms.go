package graphs

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"gm/internal/swap"
)

// Convolution is what a convolution computes: what its algorithms depend on, but for the kind of arithmetic.
type Convolution struct {
	Batch, Channels, Height, Width int64 // of its input
	Filters, Groups                int64
	KernelHeight, KernelWidth      int64
	Stride, PadHeight, PadWidth    int64
}

// Convolving is an operator that computes some of a convolution's passes, one after the other: "forward", "backward_data", "backward_filter".
type Convolving struct {
	Convolution
	Op     int32
	Passes []string
}

// Algorithm is a way to compute one of a convolution's passes.
type Algorithm struct {
	Name      string
	Workspace int64 // bytes
	Duration  time.Duration
}

// Algorithms are those of convolutions as they were measured on one GPU.
type Algorithms struct {
	Source string // the GPU and the library
	of     map[pass][]Algorithm
}

// pass is one of a convolution's three, in a kind of arithmetic.
type pass struct {
	Convolution
	arithmetic, name string
}

// ReadAlgorithms reads the CSV that experiments/workspaces/cudnn.py writes: a comment with the source, titles, and a row for each algorithm.
func ReadAlgorithms(r io.Reader) (*Algorithms, error) {
	in := bufio.NewReader(r)
	source, err := in.ReadString('\n')
	if err != nil || !strings.HasPrefix(source, "# ") {
		return nil, errors.New("its first line is no comment that names a GPU")
	}
	rows := csv.NewReader(in)
	titles, err := rows.Read()
	if err != nil {
		return nil, fmt.Errorf("titles: %w", err)
	}
	a := &Algorithms{Source: strings.TrimSpace(source[2:]), of: map[pass][]Algorithm{}}
	for {
		cells, err := rows.Read()
		if err == io.EOF {
			return a, nil
		}
		if err != nil {
			return nil, err
		}
		row := row{titles: titles, cells: cells}
		p, found := row.algorithm()
		if row.err != nil {
			line, _ := rows.FieldPos(0)
			return nil, fmt.Errorf("line %d: %w", line+1, row.err)
		}
		a.of[p] = append(a.of[p], found)
	}
}

// row is a row of a CSV, and the first error in it.
type row struct {
	titles, cells []string
	err           error
}

func (r *row) text(title string) string {
	i := slices.Index(r.titles, title)
	if i < 0 {
		r.err = cmp.Or(r.err, fmt.Errorf("there is no column %s", title))
		return ""
	}
	return r.cells[i]
}

func (r *row) number(title string) int64 {
	n, err := strconv.ParseInt(r.text(title), 10, 64)
	if (err != nil || n < 0) && r.err == nil {
		r.err = fmt.Errorf("%s: %q is no number from 0 on", title, r.text(title))
	}
	return n
}

func (r *row) algorithm() (pass, Algorithm) {
	p := pass{Convolution{
		Batch: r.number("batch"), Channels: r.number("channels"), Height: r.number("height"), Width: r.number("width"),
		Filters: r.number("filters"), Groups: r.number("groups"), KernelHeight: r.number("kernel_height"), KernelWidth: r.number("kernel_width"),
		Stride: r.number("stride"), PadHeight: r.number("pad_height"), PadWidth: r.number("pad_width"),
	}, r.text("dtype"), r.text("pass")}
	ms, err := strconv.ParseFloat(r.text("ms"), 64)
	if (err != nil || !(ms > 0 && ms < 1e6)) && r.err == nil {
		r.err = fmt.Errorf("%q milliseconds", r.text("ms"))
	}
	return p, Algorithm{r.text("algorithm"), r.number("workspace_bytes"), time.Duration(ms * float64(time.Millisecond))}
}

// worthwhile returns algorithms by growing workspace, each faster than all before it.
func worthwhile(all []Algorithm) []Algorithm {
	slices.SortFunc(all, func(a, b Algorithm) int {
		return cmp.Or(cmp.Compare(a.Workspace, b.Workspace), cmp.Compare(a.Duration, b.Duration), cmp.Compare(a.Name, b.Name))
	})
	best := all[:0]
	for _, x := range all {
		if len(best) == 0 || x.Duration < best[len(best)-1].Duration {
			best = append(best, x)
		}
	}
	return best
}

// inTurn returns the ways to compute two passes one after the other: the second takes the workspace of the first.
func inTurn(first, second []Algorithm) []Algorithm {
	var all []Algorithm
	for _, a := range first {
		for _, b := range second {
			all = append(all, Algorithm{a.Name + "+" + b.Name, max(a.Workspace, b.Workspace), a.Duration + b.Duration})
		}
	}
	return worthwhile(all)
}

// Offer makes the algorithms of all convolutions options of their operators, in a kind of arithmetic: "fp32" or "tf32". An operator by itself
// runs the one of the least workspace. The model has to be built without workspaces. It is an error if a convolution was not measured.
func (m *Model) Offer(a *Algorithms, arithmetic string) error {
	for _, c := range m.Convolutions {
		o := &m.Graph.Ops[c.Op]
		var ways []Algorithm
		for i, name := range c.Passes {
			measured := worthwhile(slices.Clone(a.of[pass{c.Convolution, arithmetic, name}]))
			if len(measured) == 0 {
				return fmt.Errorf("%s: no algorithm was measured in %s of the pass %s of %+v", o.Name, arithmetic, name, c.Convolution)
			}
			if ways = inTurn(ways, measured); i == 0 {
				ways = measured
			}
		}
		least := ways[0]
		o.Duration, o.Base = least.Duration, o.Base+least.Workspace
		for _, w := range ways[1:] {
			o.Options = append(o.Options, swap.Option{Name: w.Name, Workspace: w.Workspace - least.Workspace, Duration: w.Duration})
		}
	}
	return nil
}
