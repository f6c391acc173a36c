package capture

import (
	"testing"

	"gm/internal/capture/ring"
)

// TestFolded keeps the texts of stacks.
func TestFolded(t *testing.T) {
	s, libs := newSymbols(), new(libraries)
	for _, address := range []byte{1, 2, 1} {
		r := &ring.Record{Extra: []byte{address, 0, 0, 0, 0, 0, 0, 0}}
		if got, want := s.fold(r, libs), "0x"+string('0'+rune(address)); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if len(s.folded) != 2 {
		t.Errorf("%v", s.folded)
	}
}
