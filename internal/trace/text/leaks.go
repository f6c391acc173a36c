package text

import (
	"fmt"
	"strings"

	"gm/internal/report"
	"gm/internal/trace/changes"
	"gm/internal/units"
)

// Leaks prints a line for each leak of a trace.
func Leaks(w *strings.Builder, leaks []changes.Leak) {
	names := leakNames(leaks)
	for _, l := range leaks {
		fmt.Fprintf(w, "leak: %s\n", report.Printable(leakLine(&l, names)))
	}
}

// leakNames names the stacks of leaks.
func leakNames(leaks []changes.Leak) report.StackNames {
	var stacks []string
	for _, l := range leaks {
		stacks = append(stacks, l.Stack)
	}
	return report.NewStackNames(stacks, columns)
}

func leakLine(l *changes.Leak, names report.StackNames) string {
	text := fmt.Sprintf("device %d: %s an iteration, growing in %d of %d", l.Device, units.Bytes(l.Each), l.Grew, l.Of)
	switch {
	case l.Size > 0:
		text += fmt.Sprintf(", in blocks of %s", units.Bytes(l.Size))
	case l.Stack == "" && l.Stream < 0:
		text += ", in blocks of many sizes"
	default:
		text += ", in blocks of different sizes"
	}
	if l.Stream >= 0 {
		text += fmt.Sprintf(" on stream %d", l.Stream)
	}
	if l.Stack != "" {
		text += ": " + names.Of(l.Stack)
	}
	return text
}
