package instance

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"gm/internal/gunzip"
)

// readText reads all of r, and unpacks gzip.
func readText(r io.Reader) (string, error) {
	src := bufio.NewReaderSize(r, 1<<20)
	magic, err := src.Peek(3)
	if err != nil && err != io.EOF {
		return "", err
	}
	r = src
	if string(magic) == "\x1f\x8b\x08" {
		if r, err = gunzip.NewReader(src); err != nil {
			return "", err
		}
	}
	var text strings.Builder
	n, err := io.Copy(&text, io.LimitReader(r, maxText+1))
	switch {
	case err != nil:
		return "", err
	case n > maxText:
		return "", fmt.Errorf("more than %d bytes", maxText)
	case n == 0:
		return "", errors.New("empty input")
	}
	return strings.TrimPrefix(text.String(), "\ufeff"), nil
}

// lines splits a text into lines and skips empty ones.
type lines struct {
	rest   string
	number int // of the last line returned, from 1
}

// next returns the next line, without its end, or false after the last one.
func (l *lines) next() (string, bool) {
	for l.rest != "" {
		var line string
		line, l.rest, _ = strings.Cut(l.rest, "\n")
		l.number++
		if line = strings.TrimSuffix(line, "\r"); line != "" {
			return line, true
		}
	}
	return "", false
}

var errLong = fmt.Errorf("longer than %d bytes", maxLine)

// fields appends the fields of a line to dst.
func fields(dst []string, line string) []string {
	from := 0
	for i := range len(line) {
		if line[i] == ',' {
			dst = append(dst, line[from:i])
			from = i + 1
		}
	}
	return append(dst, line[from:])
}

// clip shortens a quoted piece of the input.
func clip(text string) string {
	const most = 60
	if len(text) > most {
		return text[:most] + "..."
	}
	return text
}
