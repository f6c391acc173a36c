package text

import (
	"fmt"
	"strings"

	"gm/formats/column"
	"gm/internal/report"
	"gm/internal/trace/failure"
	"gm/internal/trace/overview"
)

// Failures prints a line about a trace in which a request failed. It names the command that explains it.
func Failures(w *strings.Builder, o *overview.Overview, file string) {
	if !failure.Any(o) {
		return
	}
	if file == column.StandardInput {
		file = "FILE"
	}
	fmt.Fprintf(w, "\nA request failed: gmtrace why-oom %s says why, and what would have helped.\n", report.Printable(file))
}
