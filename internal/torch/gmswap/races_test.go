package gmswap

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRaces has the fake driver look for uses of memory of which neither waits for the other: kernels, copies, and what is unmapped.
func TestRaces(t *testing.T) {
	for _, test := range []struct{ name, how, env string }{
		{"plain", "remake", ""},
		{"plain", "rows", ""},
		{"streams", "remake", "EVICT=1"},
		{"overlapped", "remake", uncounted},
		{"limited", "auto", "SEED=5"},
		{"limited_streams", "auto", "SEED=0"},
	} {
		t.Run(test.name+" "+test.how, func(t *testing.T) {
			t.Parallel()
			s := newSession(t)
			s.looksForRaces(t, filepath.Join(s.dir, "races"))
			s.env = append(s.env, test.env)
			want := s.run(test.name)
			env := []string{}
			if test.how == "auto" {
				env = []string{"GM_LIMIT=16777216", "GMSWAP_DEVICE=16777216", "GMSWAP_HOST=1073741824"}
			}
			if got := s.hooked(test.name, test.how, env...); got.code != 0 || got.stdout != want.stdout {
				t.Errorf("exit status %d\n%s%s", got.code, firstDifference(got.stdout, want.stdout), got.stderr)
			}
		})
	}
}

// TestRacesFound: a program whose streams do not wait for each other is found to.
func TestRacesFound(t *testing.T) {
	s := newSession(t)
	races := filepath.Join(t.TempDir(), "races")
	s.env = append(s.env, "GM_FAKE_RACES="+races)
	s.run("unordered")
	if found, err := os.ReadFile(races); err != nil || !strings.Contains(string(found), "race: ") {
		t.Errorf("%v\n%s", err, found)
	}
}

// looksForRaces has the fake driver look for races in all programs of a session. A file gets them. There are to be none.
func (s *session) looksForRaces(t *testing.T, file string) {
	s.env = append(s.env, "GM_FAKE_RACES="+file, "GM_FAKE_RACES_SEED="+os.Getenv("GM_FAKE_RACES_SEED"))
	t.Cleanup(func() {
		if found, err := os.ReadFile(file); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v\n%s", err, found)
		}
	})
}
