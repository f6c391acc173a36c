// Package text prints the results of analyzing traces as facts, tables and curves, 100 columns wide.
package text

import (
	"fmt"
	"strings"
	"time"

	"gm/internal/report"
	"gm/internal/trace/overview"
	"gm/internal/units"
)

// line prints one line of facts with a title.
func line(w *strings.Builder, title, format string, args ...any) {
	fmt.Fprintf(w, "%-*s%s\n", titleWidth, title, report.Printable(fmt.Sprintf(format, args...)))
}

// The widths of a line and of the title in it, in characters.
const (
	columns    = 100
	titleWidth = 12
)

// list prints words with a title, on as many lines as needed.
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

// exact formats a size with a unit and in bytes.
func exact(bytes int64) string { return fmt.Sprintf("%s (%d bytes)", units.Bytes(bytes), bytes) }

// after returns the time of a moment since the first row.
func after(o *overview.Overview, timeNS int64) time.Duration {
	return time.Duration(timeNS - o.StartNS).Round(time.Millisecond)
}
