package report

import (
	"strings"
	"unicode"
)

// maxTitle is how many characters of a title are shown.
const maxTitle = 90

// Printable returns text as one line that neither a terminal nor an SVG reader can take for more than text.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, strings.ToValidUTF8(text, "?"))
}

// title cuts text that is too long for the head of a chart.
func title(text string) string {
	runes := []rune(Printable(text))
	if len(runes) > maxTitle {
		return string(runes[:maxTitle-1]) + "…"
	}
	return string(runes)
}
