package importer

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// maxLine bounds the length of a line, in bytes.
const maxLine = 1 << 20

// lines reads an input line by line.
type lines struct {
	src    *bufio.Reader
	number int64 // of the current line, from 1
	long   []byte
}

func newLines(src *bufio.Reader) *lines { return &lines{src: src} }

// next returns the next line that is not empty, without its line break; io.EOF after the last one. The line is valid
// until the next call.
func (l *lines) next() ([]byte, error) {
	for {
		l.number++
		line, err := l.read()
		if l.number == 1 {
			line = bytes.TrimPrefix(line, utf8BOM)
		}
		switch {
		case err != nil && (err != io.EOF || len(line) == 0):
			return nil, err
		case len(line) > 0:
			return line, nil
		}
	}
}

func (l *lines) read() ([]byte, error) {
	line, err := l.src.ReadSlice('\n')
	if err == bufio.ErrBufferFull {
		l.long = l.long[:0]
		for err == bufio.ErrBufferFull {
			if l.long = append(l.long, line...); len(l.long) > maxLine {
				return nil, fmt.Errorf("line %d: longer than %d bytes", l.number, maxLine)
			}
			line, err = l.src.ReadSlice('\n')
		}
		l.long = append(l.long, line...)
		line = l.long
	}
	if err != nil && err != io.EOF {
		return nil, fmt.Errorf("line %d: %w", l.number, err)
	}
	return bytes.TrimRight(line, "\r\n"), err
}

// splitCSV appends the fields of a line to dst; false if its quotes do not match. Fields in double quotes may contain
// commas and doubled double quotes.
func splitCSV(dst []string, line string) ([]string, bool) {
	for {
		if len(line) > 0 && line[0] == '"' {
			field, rest, err := quotedField(line[1:])
			if err != nil {
				return nil, false
			}
			dst = append(dst, field)
			if rest == "" {
				return dst, true
			}
			line = rest[1:]
			continue
		}
		i := 0
		for i < len(line) && line[i] != ',' {
			i++
		}
		dst = append(dst, line[:i])
		if i == len(line) {
			return dst, true
		}
		line = line[i+1:]
	}
}

var errQuotes = errors.New("quotes do not match")

// quotedField returns the field up to its closing quote, and the rest of the line, which is empty or starts with a
// comma.
func quotedField(s string) (field, rest string, err error) {
	var b []byte
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] != '"':
			b = append(b, s[i])
		case i+1 < len(s) && s[i+1] == '"':
			b = append(b, '"')
			i++
		case i+1 == len(s) || s[i+1] == ',':
			return string(b), s[i+1:], nil
		default:
			return "", "", errQuotes
		}
	}
	return "", "", errQuotes
}
