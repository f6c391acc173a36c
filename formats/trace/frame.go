package trace

import (
	"strconv"
	"strings"
)

// Frame is a parsed frame of a stack.
type Frame struct {
	Name string // of the function
	File string // "" when unknown
	Line int64  // 0 when unknown
}

// ParseFrame parses a frame of a folded stack, "name (file:line)". Text of any other form becomes the name.
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
