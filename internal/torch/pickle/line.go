package pickle

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxDigits bounds the length of a number that is written out, and of the names of a global.
const maxDigits = 4096

// stepLine executes the opcodes of protocol 0, whose arguments are lines of text.
func (d *Decoder) stepLine(op byte) error {
	switch op {
	case opInt, opLong, opFloat, opPut, opGet:
		line, err := d.line(maxDigits)
		if err != nil {
			return err
		}
		return d.number(op, string(line))
	case opString:
		line, err := d.line(maxText)
		if err != nil {
			return err
		}
		return d.quoted(line)
	case opUnicode:
		line, err := d.line(maxText)
		if err != nil {
			return err
		}
		return d.pushText(unescape(line, false))
	}
	return d.stepCall(op)
}

func (d *Decoder) line(limit int) ([]byte, error) {
	line, ok, err := d.in.line(limit)
	if err != nil {
		return nil, d.cut(err)
	}
	if !ok {
		return nil, d.fail("a line of more than %d bytes", limit)
	}
	return line, nil
}

func (d *Decoder) pushText(b []byte) error {
	v, err := d.intern(Str, b)
	if err != nil {
		return err
	}
	return d.push(v)
}

func (d *Decoder) number(op byte, line string) error {
	line = strings.TrimSuffix(line, "\r")
	switch op {
	case opInt:
		switch line {
		case "00":
			return d.push(makeValue(Bool, 0))
		case "01":
			return d.push(makeValue(Bool, 1))
		}
		return d.pushDecimal(line)
	case opLong:
		return d.pushDecimal(strings.TrimSuffix(line, "L"))
	case opFloat:
		f, err := strconv.ParseFloat(line, 64)
		if err != nil {
			return d.fail("%q is no float", line)
		}
		return d.pushFloat(f)
	}
	i, err := strconv.ParseUint(line, 10, 32)
	if err != nil {
		return d.fail("%q is no memo entry", line)
	}
	if op == opPut {
		return d.put(i)
	}
	return d.fetch(i)
}

// quoted pushes a string that is written as its repr().
func (d *Decoder) quoted(line []byte) error {
	line = []byte(strings.TrimSpace(string(line)))
	n := len(line)
	if n < 2 || line[0] != line[n-1] || line[0] != '\'' && line[0] != '"' {
		return d.fail("a string without quotes")
	}
	return d.pushText(unescape(line[1:n-1], true))
}

// unescape resolves \u and \U, all that protocol 0 writes into a unicode string, and with all the other escapes of
// a Python string as well. Text that is not an escape stays.
func unescape(s []byte, all bool) []byte {
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			if s[i] < utf8.RuneSelf || all {
				out = append(out, s[i])
			} else {
				out = utf8.AppendRune(out, rune(s[i])) // raw-unicode-escape writes Latin-1 unchanged
			}
			continue
		}
		width := 0
		switch c := s[i+1]; {
		case c == 'u':
			width = 4
		case c == 'U':
			width = 8
		case c == 'x' && all:
			width = 2
		case all && strings.IndexByte(simpleEscapes, c) >= 0:
			out = append(out, simpleMeanings[strings.IndexByte(simpleEscapes, c)])
			i++
			continue
		}
		if r, err := strconv.ParseUint(string(s[min(i+2, len(s)):min(i+2+width, len(s))]), 16, 32); width > 0 && err == nil {
			if width == 2 {
				out = append(out, byte(r))
			} else {
				out = utf8.AppendRune(out, rune(r))
			}
			i += 1 + width
			continue
		}
		out = append(out, s[i])
	}
	return out
}

const (
	simpleEscapes  = `\'"nrt`
	simpleMeanings = "\\'\"\n\r\t"
)
