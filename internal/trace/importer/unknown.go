package importer

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// unknown returns the error about an input that is in none of the formats: what it looks like, and what is expected.
func unknown(head []byte) error {
	if len(head) == 0 {
		return errors.New("nothing in it")
	}
	if isExport(head) {
		return errors.New("an export for Perfetto, which ui.perfetto.dev opens: name the trace or the snapshot that it was made from")
	}
	return fmt.Errorf("%s, not a recording: expected a gm trace (Parquet), a PyTorch memory snapshot, a profile of torch.profiler (JSON), an RMM log, an STAlloc trace, or a CSV with"+
		" the columns id, lower, upper and size or time_ns, op, id and size", looks(head))
}

// exports are how the pictures in time begin that gmtrace export and gmswap simulate write: they lack what a recording has.
var exports = []string{`{"displayTimeUnit":"ns","traceEvents":[`, `{"displayTimeUnit": "ms", "traceEvents": [`}

func isExport(head []byte) bool {
	return slices.ContainsFunc(exports, func(prefix string) bool { return bytes.HasPrefix(head, []byte(prefix)) })
}

// magics are how files begin that are mistaken for recordings.
var magics = []struct{ prefix, what string }{
	{"PK\x03\x04", "a zip file, such as torch.save writes"},
	{"SQLite format 3\x00", "an SQLite database, such as Nsight Systems exports"},
	{"\x28\xb5\x2f\xfd", "compressed by zstd (only gzip is unpacked)"},
	{"\xfd7zXZ\x00", "compressed by xz (only gzip is unpacked)"},
	{"BZh", "compressed by bzip2 (only gzip is unpacked)"},
	{"\x1f\x8b", "compressed twice by gzip"},
	{"\x7fELF", "a program"},
}

// looks says what an input looks like that begins with head.
func looks(head []byte) string {
	for _, m := range magics {
		if bytes.HasPrefix(head, []byte(m.prefix)) {
			return m.what
		}
	}
	line, isText := firstLine(head)
	switch {
	case !isText:
		return fmt.Sprintf("binary data that begin with the bytes % x", head[:min(len(head), 8)])
	case line == "":
		return "blank"
	case strings.HasPrefix(line, "{"), strings.HasPrefix(line, "["):
		return "JSON, but no profile of torch.profiler"
	case strings.HasPrefix(line, "<"):
		return "HTML or XML"
	}
	return fmt.Sprintf("text that begins with %q", line)
}

// maxQuoted is how many bytes of a text are quoted.
const maxQuoted = 40

// firstLine returns the start of a text's first line that is not blank, and whether it is text.
func firstLine(head []byte) (string, bool) {
	line := strings.TrimSpace(string(bytes.TrimPrefix(head, utf8BOM)))
	line, _, _ = strings.Cut(line, "\n")
	if len(line) > maxQuoted {
		line = line[:maxQuoted]
		for len(line) > 0 && !utf8.ValidString(line) && len(line) > maxQuoted-utf8.UTFMax {
			line = line[:len(line)-1]
		}
	}
	printable := func(r rune) bool { return r != utf8.RuneError && (unicode.IsPrint(r) || r == '\t' || r == '\r') }
	return strings.TrimRight(line, "\r"), strings.IndexFunc(line, func(r rune) bool { return !printable(r) }) < 0
}
