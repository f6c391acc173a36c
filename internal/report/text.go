package report

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxTitle is the most characters of a title.
const maxTitle = 90

// Printable returns text as one line without characters that a terminal or an SVG reader would interpret.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, strings.ToValidUTF8(text, "?"))
}

// title shortens text to fit the title of a chart.
func title(text string) string {
	return cutTo(Printable(text), maxTitle)
}

// cutTo shortens text to width characters.
func cutTo(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:max(width-1, 0)]) + "…"
}
