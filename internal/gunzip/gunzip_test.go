package gunzip

import (
	"bufio"
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/gzip"
)

func packed(t *testing.T, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestReader(t *testing.T) {
	long := strings.Repeat("text ", 100_000)
	one, two := packed(t, long), packed(t, "more")
	for name, c := range map[string]struct {
		parts [][]byte
		want  string
		fails string
	}{
		"one member":           {[][]byte{one}, long, ""},
		"two":                  {[][]byte{one, two}, long + "more", ""},
		"an empty one":         {[][]byte{packed(t, ""), two}, "more", ""},
		"zeros after it":       {[][]byte{two, make([]byte, 1000)}, "more", ""},
		"something else there": {[][]byte{two, []byte("\x00garbage...")}, "more", "gunzip: gzip: invalid header"},
		"a part of a member":   {[][]byte{two, one[:len(one)/2]}, "", "gunzip: unexpected EOF"},
		"a part of a header":   {[][]byte{two, one[:5]}, "more", "gunzip: unexpected EOF"},
	} {
		all := bytes.Join(c.parts, nil)
		for how, src := range map[string]io.Reader{"whole": bytes.NewReader(all), "byte by byte": iotest.OneByteReader(bytes.NewReader(all))} {
			r, err := NewReader(bufio.NewReader(src))
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(r)
			said := ""
			if err != nil {
				said = err.Error()
			}
			if said != c.fails || !strings.HasPrefix(string(text), c.want) || c.fails == "" && string(text) != c.want {
				t.Errorf("%s, %s: %d bytes, %q, want %d bytes, %q", name, how, len(text), said, len(c.want), c.fails)
			}
		}
	}
}
