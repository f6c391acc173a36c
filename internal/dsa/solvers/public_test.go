package solvers

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gm/internal/dsa"
	"gm/internal/dsa/dsatest"
)

// The public instances of google/minimalloc, cappadokes/idealloc and google/iopddl, and the peaks that the default
// solver must reach, as a multiple of the bound.
var public = []struct {
	name   string
	within float64
}{
	{"idealloc-pangu2.6B.csv.gz", 1},
	{"idealloc-resnet50.csv", 1},
	{"iopddl-A.csv.gz", 1},
	{"iopddl-P.csv.gz", 1},
	{"minimalloc-A.csv", 1},
	{"minimalloc-B.csv", 1},
	{"minimalloc-C.csv", 1},
	{"minimalloc-D.csv", 1.02},
	{"minimalloc-E.csv", 1.01},
	{"minimalloc-G.csv", 1},
	{"minimalloc-J.csv", 1.05},
}

func TestPublicInstances(t *testing.T) {
	for _, c := range public {
		t.Run(c.name, func(t *testing.T) {
			p := loadPublic(t, c.name)
			l, err := Solver(t, "auto").Solve(t.Context(), p, dsa.Options{})
			if err == nil {
				err = dsa.Check(p, l)
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d buffers: %+.4f%% over the bound, by %s", p.Len(), 100*(float64(l.Peak)/float64(l.Bound)-1), l.Method)
			if float64(l.Peak) > c.within*float64(l.Bound) {
				t.Errorf("peak %d is more than %g times the bound %d", l.Peak, c.within, l.Bound)
			}
		})
	}
}

// loadPublic reads an instance of the directory dsa of the shared data.
func loadPublic(t testing.TB, name string) *dsa.Problem {
	t.Helper()
	shared := os.Getenv("GM_SHARED")
	if shared == "" {
		t.Skip("GM_SHARED is not set")
	}
	f, err := os.Open(filepath.Join(shared, "dsa", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var src io.Reader = f
	if strings.HasSuffix(name, ".gz") {
		if src, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	p := &dsa.Problem{Align: 1}
	lines := bufio.NewScanner(src)
	for lines.Scan() {
		var id, start, end, size int64
		if _, err := fmt.Sscanf(lines.Text(), "%d,%d,%d,%d", &id, &start, &end, &size); err == nil {
			dsatest.Add(p, start, end, size)
		}
	}
	if lines.Err() != nil || p.Len() == 0 {
		t.Fatalf("%d buffers read: %v", p.Len(), lines.Err())
	}
	return p
}
