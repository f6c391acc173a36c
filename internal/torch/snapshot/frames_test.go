package snapshot

import (
	"encoding/binary"
	"strings"
	"testing"

	"gm/formats/column"
)

// TestLongStack folds a stack that is too long: it keeps whole innermost frames, within the length that other importers take.
func TestLongStack(t *testing.T) {
	s := newStacks(column.NewStrings())
	outer := strings.Repeat("n", maxFrameText)
	s.frames = []string{"inner (a.py:3)", outer}
	s.key = binary.LittleEndian.AppendUint32(s.key, 0)
	for range maxStackText / maxFrameText {
		s.key = binary.LittleEndian.AppendUint32(s.key, 1)
	}
	text := s.strings.Text(s.fold())
	want := "...;" + strings.Repeat(outer+";", maxStackText/maxFrameText-1) + "inner (a.py:3)"
	if text != want || len(text) > maxStackText || s.cut != 1 {
		t.Errorf("%d bytes, %d cut, want %d bytes: %.40s", len(text), s.cut, len(want), text)
	}
}
