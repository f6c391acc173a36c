package gmswap

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLaid has steps under a limit get the addresses of a plan, with evaluations and a step of another size between them. What comes out is what
// comes out without the hook, and the limit holds.
func TestLaid(t *testing.T) {
	s := newSession(t)
	plain := s.run("laid")
	if plain.code != 0 || plain.stderr != "" {
		t.Fatalf("without the hook: %+v", plain)
	}
	most := s.physical()
	for _, share := range []uint64{45, 50} {
		t.Run(fmt.Sprint(share), func(t *testing.T) {
			t.Parallel()
			s := newSession(t)
			limit, laid := most*share/100, filepath.Join(t.TempDir(), "laid")
			got := s.hooked("laid", "auto", fmt.Sprintf("GM_LIMIT=%d", limit), fmt.Sprintf("GMSWAP_DEVICE=%d", limit), "GMSWAP_HOST=1073741824", "LAID="+laid)
			if got.code != 0 || got.stdout != plain.stdout {
				t.Fatalf("exit status %d\n%s%s", got.code, firstDifference(got.stdout, plain.stdout), got.stderr)
			}
			if took := s.physical(); took == 0 || took > limit {
				t.Errorf("it took %d bytes of the %d allowed", took, limit)
			}
			s.holdsNothing()
			states, err := os.ReadFile(laid)
			if n := strings.Count(string(states), "3"); err != nil || n < 5 {
				t.Errorf("%d steps followed a plan: %s %v", n, states, err)
			}
			t.Logf("%d bytes of %d: %s\n%s", limit, most, states, got.stderr)
		})
	}
}
