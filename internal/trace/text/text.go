// Package text prints what is found in traces, as facts, tables and curves of 100 columns.
package text

import (
	"fmt"
	"strings"
	"time"

	"gm/internal/report"
	"gm/internal/trace/overview"
	"gm/internal/units"
)

// line prints one line of facts under a title.
func line(w *strings.Builder, title, format string, args ...any) {
	fmt.Fprintf(w, "%-*s%s\n", titleWidth, title, report.Printable(fmt.Sprintf(format, args...)))
}

// Lines are so wide at most, and so much of that is for a title.
const (
	columns    = 100
	titleWidth = 12
)

// list prints words under a title, on as many lines as they need.
func list(w *strings.Builder, title string, words []string) {
	text := ""
	for i, word := range words {
		if i < len(words)-1 {
			word += ", "
		}
		if len(text)+len(strings.TrimSpace(word)) > columns-titleWidth {
			line(w, title, "%s", strings.TrimSpace(text))
			title, text = "", ""
		}
		text += word
	}
	line(w, title, "%s", text)
}

// exact returns a size as people and as programs read it.
func exact(bytes int64) string { return fmt.Sprintf("%s (%d bytes)", units.Bytes(bytes), bytes) }

// after returns when a moment was, counted from the first row.
func after(o *overview.Overview, timeNS int64) time.Duration {
	return time.Duration(timeNS - o.StartNS).Round(time.Millisecond)
}
