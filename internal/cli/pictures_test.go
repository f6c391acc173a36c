package cli

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestPictures writes the pictures that are asked for, and refuses one file for two of them.
func TestPictures(t *testing.T) {
	dir := t.TempDir()
	png, svg := filepath.Join(dir, "a.png"), filepath.Join(dir, "a.svg")
	text := func(s string) func(io.Writer) error {
		return func(w io.Writer) error {
			_, err := io.WriteString(w, s)
			return err
		}
	}
	c := &Context{Tool: "test", Err: io.Discard}
	for _, p := range []Pictures{{}, {PNG: png}, {SVG: svg}, {PNG: png, SVG: svg}} {
		os.Remove(png)
		os.Remove(svg)
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
		if err := p.Write(c.File, text("png"), text("svg")); err != nil {
			t.Fatal(err)
		}
		for path, want := range map[string]bool{png: p.PNG != "", svg: p.SVG != ""} {
			if _, err := os.Stat(path); (err == nil) != want {
				t.Errorf("%+v: %s is there: %t", p, path, err == nil)
			}
		}
	}
	for _, p := range []Pictures{{PNG: png, SVG: png}, {PNG: png, SVG: dir + "/./a.png"}} {
		if p.Check() == nil {
			t.Errorf("%+v is accepted", p)
		}
	}
	if err := os.WriteFile(png, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if p := (Pictures{PNG: png}); p.Check(png) == nil {
		t.Errorf("%+v is accepted for the input %s", p, png)
	}
}

func TestWriteJSON(t *testing.T) {
	value := map[string]string{"name": "a<b>&c"}
	var indented, line bytes.Buffer
	if err := WriteJSON(&indented, value); err != nil || indented.String() != "{\n  \"name\": \"a<b>&c\"\n}\n" {
		t.Errorf("%q, %v", indented.String(), err)
	}
	if err := WriteJSONLine(&line, value); err != nil || line.String() != "{\"name\":\"a<b>&c\"}\n" {
		t.Errorf("%q, %v", line.String(), err)
	}
}
