package papers

import (
	"bufio"
	"fmt"
	"io"

	"gm/internal/order"
)

// WriteProgram writes MODeL's program of a problem (section 3 of the paper, without the spilling that its section 4.3 leaves out too) in
// CPLEX's LP format. Time is divided into steps, one for each operator. Binary variables say that an operator v runs at step t, r_v_t, and
// that a tensor e is kept in memory from step t-1 to t, p_e_t. They exist from the first step at which the operator can run to the last one,
// by the operators that come before and behind it. The objective is the peak in bytes.
//
// Operators that run one after the other in the program but could run at once do not share a step, as they do in MODeL when T is the
// length of the longest path: the least peak is that of serial execution.
func WriteProgram(w io.Writer, l *order.Links) error {
	out := bufio.NewWriter(w)
	p := &program{Writer: out, Links: l, spans: spans(l)}
	p.line("Minimize")
	p.line(" obj: peak")
	p.line("Subject To")
	p.onceEach()
	p.onePerStep()
	p.keep()
	p.memory()
	p.line("Binaries")
	p.binaries()
	p.line("End")
	return out.Flush()
}

type program struct {
	*bufio.Writer
	*order.Links
	spans [][2]int // by operator: the first and the last step at which it can run
}

// line writes a line; the error of a write stays in the writer.
func (p *program) line(format string, args ...any) { fmt.Fprintf(p.Writer, format+"\n", args...) }

// spans returns the steps at which each operator can run: behind all that come before it, and before all that come behind it.
func spans(l *order.Links) [][2]int {
	n := l.Problem.Ops()
	all := make([][2]int, n)
	for op := range int32(n) {
		all[op] = [2]int{count(op, &l.Preds, n), n - 1 - count(op, &l.Succs, n)}
	}
	return all
}

// count returns how many operators are reached from one.
func count(op int32, next *order.Lists, n int) int {
	seen := make([]bool, n)
	stack := []int32{op}
	reached := 0
	for len(stack) > 0 {
		at := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, other := range next.Of(at) {
			if !seen[other] {
				seen[other] = true
				reached++
				stack = append(stack, other)
			}
		}
	}
	return reached
}

// onceEach has each operator run once.
func (p *program) onceEach() {
	for op, span := range p.spans {
		fmt.Fprintf(p.Writer, " once_%d:", op)
		for t := span[0]; t <= span[1]; t++ {
			fmt.Fprintf(p.Writer, " + r_%d_%d", op, t)
		}
		p.line(" = 1")
	}
}

// onePerStep has one operator run at each step.
func (p *program) onePerStep() {
	for t := range p.spans {
		fmt.Fprintf(p.Writer, " step_%d:", t)
		for op, span := range p.spans {
			if span[0] <= t && t <= span[1] {
				fmt.Fprintf(p.Writer, " + r_%d_%d", op, t)
			}
		}
		p.line(" <= 1")
	}
}

// life returns the first and the last step at which a tensor can be in memory.
func (p *program) life(t *order.Tensor) (first, last int) {
	first = p.spans[t.Made()][0]
	for _, op := range t.Ops {
		last = max(last, p.spans[op][1])
	}
	return first, last
}

// keep has a tensor kept at a step only if it was made or kept at the one before, and an operator run only where what it reads is kept. The
// relation of operators without a tensor is one of their steps.
func (p *program) keep() {
	for i := range p.Problem.Tensors {
		t := &p.Problem.Tensors[i]
		first, last := p.life(t)
		made := p.spans[t.Made()]
		for step := first + 1; step <= last; step++ {
			fmt.Fprintf(p.Writer, " keep_%d_%d: p_%d_%d", i, step, i, step)
			if step-1 > first {
				fmt.Fprintf(p.Writer, " - p_%d_%d", i, step-1)
			}
			if step-1 <= made[1] {
				fmt.Fprintf(p.Writer, " - r_%d_%d", t.Made(), step-1)
			}
			p.line(" <= 0")
		}
		for _, op := range t.Ops[1:] {
			for step := p.spans[op][0]; step <= p.spans[op][1]; step++ {
				p.line(" read_%d_%d_%d: r_%d_%d - p_%d_%d <= 0", i, op, step, op, step, i, step)
			}
		}
	}
	for i, pair := range p.Problem.Before {
		fmt.Fprintf(p.Writer, " before_%d:", i)
		for step := p.spans[pair[1]][0]; step <= p.spans[pair[1]][1]; step++ {
			fmt.Fprintf(p.Writer, " + %d r_%d_%d", step, pair[1], step)
		}
		for step := p.spans[pair[0]][0]; step <= p.spans[pair[0]][1]; step++ {
			fmt.Fprintf(p.Writer, " - %d r_%d_%d", step, pair[0], step)
		}
		p.line(" >= 1")
	}
}

// memory has the peak be at least what is made, kept and taken at each step.
func (p *program) memory() {
	terms := make([][]string, len(p.spans))
	for op, span := range p.spans {
		bytes := p.Problem.Temp[op]
		for _, t := range p.Touched.Of(int32(op)) {
			if p.Problem.Tensors[t].Made() == int32(op) {
				bytes += p.Problem.Tensors[t].Bytes
			}
		}
		for step := span[0]; step <= span[1] && bytes > 0; step++ {
			terms[step] = append(terms[step], fmt.Sprintf(" + %d r_%d_%d", bytes, op, step))
		}
	}
	for i := range p.Problem.Tensors {
		t := &p.Problem.Tensors[i]
		first, last := p.life(t)
		for step := first + 1; step <= last; step++ {
			terms[step] = append(terms[step], fmt.Sprintf(" + %d p_%d_%d", t.Bytes, i, step))
		}
	}
	for step, sum := range terms {
		fmt.Fprintf(p.Writer, " memory_%d:", step)
		for _, term := range sum {
			p.WriteString(term)
		}
		p.line(" - peak <= 0")
	}
}

func (p *program) binaries() {
	for op, span := range p.spans {
		for step := span[0]; step <= span[1]; step++ {
			p.line(" r_%d_%d", op, step)
		}
	}
	for i := range p.Problem.Tensors {
		first, last := p.life(&p.Problem.Tensors[i])
		for step := first + 1; step <= last; step++ {
			p.line(" p_%d_%d", i, step)
		}
	}
}
