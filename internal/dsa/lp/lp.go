// Package lp writes problems of dynamic storage allocation as mixed integer programs, for solvers such as glpsol and cbc.
package lp

import (
	"bufio"
	"fmt"
	"io"

	"gm/internal/dsa"
)

// Write writes the model of MEMO (SIGMOD 2025, section 4.2), which is that of Chainer (arXiv 1804.10001), in CPLEX's LP format:
//
//	min M
//	A_i + S_i <= M
//	A_i + S_i <= A_j + z_ij Mcap          for all i, j that live at the same time
//	A_j + S_j <= A_i + (1 - z_ij) Mcap
//	0 <= M <= Mcap, A_i >= 0, z_ij in {0, 1}
//
// where Mcap is the capacity, in bytes. When that is 0 or has no effect, Mcap is the height of a stack of all buffers. The unit is the
// problem's alignment. Once all z are chosen, only integer bounds on differences remain, and every basic solution of those
// is integral: so the A need not be declared as integers. The offsets of fixed buffers are bounds, ties are equations, and a buffer
// with its own alignment has an offset that is a multiple of an integer K_i.
//
// Numbers in names are indices of the problem's buffers. Buffers with no life or no size are left out unless they are tied. It is an
// error when more than 2 million pairs live at the same time.
func Write(w io.Writer, p *dsa.Problem, capacity int64) error {
	m, err := newModel(p, capacity)
	if err != nil {
		return fmt.Errorf("write LP: %w", err)
	}
	out := bufio.NewWriterSize(w, 1<<16)
	m.write(out)
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write LP: %w", err)
	}
	return nil
}

func (m *model) write(w *bufio.Writer) {
	p := m.problem
	fmt.Fprintf(w, "\\ Dynamic storage allocation: %d buffers, %d conflicts; the unit is %d bytes.\n", p.Len(), len(m.pairs), p.Align)
	fmt.Fprintf(w, "Minimize\n peak: M\nSubject To\n")
	for _, i := range m.solid {
		fmt.Fprintf(w, " top%d: M - A%d >= %d\n", i, i, m.size(i))
	}
	for _, c := range m.pairs {
		fmt.Fprintf(w, " below%d_%d: A%d - A%d - %d z%d_%d <= %d\n", c.a, c.b, c.a, c.b, m.cap, c.a, c.b, -m.size(c.a))
		fmt.Fprintf(w, " above%d_%d: A%d - A%d + %d z%d_%d <= %d\n", c.a, c.b, c.b, c.a, m.cap, c.a, c.b, m.cap-m.size(c.b))
	}
	for i, t := range p.Ties {
		fmt.Fprintf(w, " tie%d: A%d - A%d = %d\n", i, t.B, t.A, t.Delta/p.Align)
	}
	for _, a := range m.aligned {
		fmt.Fprintf(w, " align%d: A%d - %d K%d = 0\n", a.buffer, a.buffer, a.multiple, a.buffer)
	}
	m.writeBounds(w)
	fmt.Fprintf(w, "End\n")
}

func (m *model) writeBounds(w *bufio.Writer) {
	fmt.Fprintf(w, "Bounds\n 0 <= M <= %d\n", m.cap)
	for i, at := range m.problem.Fixed {
		if at != dsa.Free && m.used[i] {
			fmt.Fprintf(w, " A%d = %d\n", i, at/m.problem.Align)
		}
	}
	if len(m.aligned) > 0 {
		fmt.Fprintf(w, "Generals\n")
	}
	for _, a := range m.aligned {
		fmt.Fprintf(w, " K%d\n", a.buffer)
	}
	if len(m.pairs) > 0 {
		fmt.Fprintf(w, "Binaries\n")
	}
	for _, c := range m.pairs {
		fmt.Fprintf(w, " z%d_%d\n", c.a, c.b)
	}
}
