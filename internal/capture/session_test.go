package capture

import (
	"fmt"
	"testing"
)

// TestTrouble warns of an error once, and of so many at most.
func TestTrouble(t *testing.T) {
	warned := 0
	s := &Session{told: map[string]bool{}, options: Options{Warn: func(string, ...any) { warned++ }}}
	for i := range 2 * maxTold {
		for range 2 {
			s.trouble(fmt.Errorf("error %d", i))
		}
		if want := min(i+1, maxTold); warned != want {
			t.Fatalf("%d warnings of %d errors, want %d", warned, i+1, want)
		}
	}
}
