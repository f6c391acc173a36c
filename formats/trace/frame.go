package trace

import (
	"strconv"
	"strings"
)

// Frame is a call of a stack, taken apart.
type Frame struct {
	Name string // of the function
	File string // "" when unknown
	Line int64  // 0 when unknown
}

// ParseFrame takes a frame of a folded stack apart, "name (file:line)". What is of another form is a name.
func ParseFrame(text string) Frame {
	at := strings.LastIndex(text, " (")
	if at < 0 || !strings.HasSuffix(text, ")") {
		return Frame{Name: text}
	}
	place := text[at+2 : len(text)-1]
	colon := strings.LastIndexByte(place, ':')
	if colon < 0 {
		return Frame{Name: text}
	}
	line, err := strconv.ParseInt(place[colon+1:], 10, 32)
	if err != nil || line < 0 {
		return Frame{Name: text}
	}
	return Frame{text[:at], place[:colon], line}
}
