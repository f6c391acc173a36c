package exporter

import (
	"fmt"
	"strings"

	"gm/formats/trace"
	"gm/internal/trace/iterations"
)

// stalloc writes a trace like STAlloc's trace mode: one line per call, without times.
func (x *export) stalloc() error {
	steps := 0
	return x.calls(func(r *trace.Reader, e *trace.Event, b *block) error {
		var err error
		switch {
		case e.Op == trace.OpMark:
			tag := oneLine(r.Strings().Text(e.Tag))
			if tag == iterations.Step {
				steps++
				tag = fmt.Sprintf("Iteration Index : %d", steps)
			}
			if !ofSTAlloc(tag) {
				x.leave("marks are left out: they are not STAlloc's")
				return nil
			}
			_, err = x.out.WriteString(tag + "\n")
		case b == nil:
			x.leave("failed requests are left out: a trace of STAlloc has none")
		case e.Op == trace.OpAlloc:
			_, err = fmt.Fprintf(x.out, "1 %#x %d %d\n", b.addr, b.size, uint64(b.stream))
		default:
			_, err = fmt.Fprintf(x.out, "0 %#x %d %d\n", b.addr, b.size, uint64(b.stream))
		}
		return err
	})
}

// ofSTAlloc reports whether a mark is a line of STAlloc's that cannot be mistaken for an allocation.
func ofSTAlloc(tag string) bool {
	known := strings.Contains(tag, "Iteration Index") || strings.Contains(tag, "micro-batch") ||
		strings.Contains(tag, "Layer") && strings.Contains(tag, "->")
	return known && tag[0] != '0' && tag[0] != '1'
}
