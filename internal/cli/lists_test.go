package cli

import (
	"strings"
	"testing"
)

func TestLists(t *testing.T) {
	rest, list := cutLists("Do things: all.\n\nThings:\n\nthis    what it is\n\nthat-one: " + strings.Repeat("word ", 20) + "\n\nOthers:\n\nx: y")
	var out strings.Builder
	if err := writeLists(&out, list); err != nil {
		t.Fatal(err)
	}
	want := "\nThings:\n" +
		"  this      what it is\n" +
		"  that-one  word word word word word word word word word word word word word\n" +
		"            word word word word word word word\n" +
		"\nOthers:\n" +
		"  x         y\n"
	if rest != "Do things: all." || out.String() != want {
		t.Errorf("%q, %q", rest, out.String())
	}
	if rest, list := cutLists("Nothing: here.\n\nExample: do"); rest != "Nothing: here.\n\nExample: do" || list != "" {
		t.Errorf("%q, %q", rest, list)
	}
}
