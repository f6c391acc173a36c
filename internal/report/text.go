package report

import (
	"strings"
	"unicode"
	"unicode/utf8"
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
	return cutTo(Printable(text), maxTitle)
}

// cutTo cuts text off after so many characters.
func cutTo(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:max(width-1, 0)]) + "…"
}
