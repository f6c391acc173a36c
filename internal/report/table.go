// Package report prints tables and draws charts.
package report

import (
	"bufio"
	"io"
	"strings"
	"unicode/utf8"
)

// Table is text in columns. The first column is aligned left, the others right.
type Table struct {
	Titles []string
	Rows   [][]string
}

// Add adds a row, which must have as many cells as there are titles.
func (t *Table) Add(cells ...string) {
	if len(cells) != len(t.Titles) {
		panic("BUG: a row of the wrong width")
	}
	for i := range cells {
		cells[i] = Printable(cells[i])
	}
	t.Rows = append(t.Rows, cells)
}

// Write prints the table.
func (t *Table) Write(w io.Writer) error {
	widths := make([]int, len(t.Titles))
	for _, row := range append([][]string{t.Titles}, t.Rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	out := bufio.NewWriter(w)
	for _, row := range append([][]string{t.Titles}, t.Rows...) {
		var line strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				line.WriteString(cell + pad)
			} else {
				line.WriteString("  " + pad + cell)
			}
		}
		out.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return out.Flush()
}
