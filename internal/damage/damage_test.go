// Package damage holds a test of what the commands do with damaged files.
package damage

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"gm/formats/column/columntest"
)

var (
	seed = flag.Uint64("seed", 1, "what the damage is drawn from")
	most = flag.Duration("time", 10*time.Second, "how long files of each kind are damaged")
)

// What may be spent on one damaged file of at most some 100 KiB.
const (
	maxTime  = time.Minute
	maxAlloc = 4 << 30 // bytes allocated in all, freed ones included
	maxHeap  = 1 << 30 // bytes of the heap at the end
)

// kind is a kind of file, and what the commands do with one. A file that is refused gives an error, and one that is taken and
// gives figures that cannot be, a failed test.
type kind struct {
	name  string
	files map[string][]byte
	use   func(t *testing.T, rng *rand.Rand, file string) error
	texts []string
}

// TestDamaged damages files byte by byte, and row by row so that they are good Parquet with other values. None may make a command panic,
// hang, or take memory without bound, and what is accepted agrees with an account of it that is kept in another way.
func TestDamaged(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(50))
	for _, k := range []kind{traces(t), plans(t), schedules(t), steps(t)} {
		t.Run(k.name, func(t *testing.T) {
			d := newDamager(t, k)
			for end := time.Now().Add(*most); time.Now().Before(end) && !t.Failed(); {
				d.one(t)
			}
			t.Logf("%d files, %d accepted", d.files, d.accepted)
			if d.accepted == 0 || d.accepted == d.files {
				t.Error("all files are alike")
			}
		})
	}
}

// damager makes damaged files of one kind.
type damager struct {
	kind
	path            string
	sources         []source
	files, accepted int
}

// source is a file that is damaged.
type source struct {
	name   string
	bytes  [][]byte // as it is, and with pages that are not compressed
	values *columntest.Altered
}

func newDamager(t *testing.T, k kind) *damager {
	d := &damager{kind: k, path: filepath.Join(t.TempDir(), "x.parquet")}
	for name, file := range k.files {
		d.sources = append(d.sources, newSource(t, name, file, k.texts))
		if err := d.try(t, file, rand.New(rand.NewPCG(*seed, 0)), name+", undamaged"); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return d
}

func newSource(t *testing.T, name string, file []byte, texts []string) source {
	plain, err := columntest.Plain(file)
	if err != nil {
		t.Fatal(err)
	}
	values, err := columntest.NewAltered(file, append(texts, commonTexts...))
	if err != nil {
		t.Fatal(err)
	}
	return source{name, [][]byte{file, plain}, values}
}

// commonTexts are put into columns of text, and into metadata.
var commonTexts = []string{
	"", "\x1b[2J\x00\xff", strings.Repeat("x;", 3000), "NaN", "{}", "[]", "[1,2,3]", "1e400", "-1", "9223372036854775808", "1.0", "step",
}

// one damages a file and uses it. Three of four have other values, which get further.
func (d *damager) one(t *testing.T) {
	rng := rand.New(rand.NewPCG(*seed, uint64(d.files)))
	d.files++
	s := &d.sources[rng.IntN(len(d.sources))]
	var file []byte
	var err error
	if rng.IntN(4) == 0 {
		file = columntest.Mutate(rng, s.bytes[rng.IntN(len(s.bytes))])
	} else if file, err = s.values.File(rng); err != nil {
		t.Fatal(err)
	}
	err = d.try(t, file, rng, fmt.Sprintf("%s, seed %d, file %d", s.name, *seed, d.files-1))
	switch {
	case err == nil:
		d.accepted++
	case strings.Contains(err.Error(), "BUG"), strings.Contains(err.Error(), "\n"):
		t.Errorf("%s: seed %d, file %d: %v", s.name, *seed, d.files-1, err)
	}
	if t.Failed() {
		d.keep(t, file)
	}
}

// try uses a file within the bounds.
func (d *damager) try(t *testing.T, file []byte, rng *rand.Rand, what string) (err error) {
	if err := os.WriteFile(d.path, file, 0o666); err != nil {
		t.Fatal(err)
	}
	hung := time.AfterFunc(maxTime, func() {
		stacks := make([]byte, 1<<20)
		panic(fmt.Sprintf("%s takes more than %v\n%s", what, maxTime, stacks[:runtime.Stack(stacks, true)]))
	})
	defer hung.Stop()
	defer func() {
		if p := recover(); p != nil {
			d.keep(t, file)
			t.Fatalf("%s: panic: %v\n%s", what, p, debug.Stack())
		}
	}()
	before := allocated()
	err = d.use(t, rng, d.path)
	if took := allocated() - before; took > maxAlloc || heap() > maxHeap {
		t.Errorf("%s: %d bytes allocated, a heap of %d", what, took, heap())
	}
	return err
}

// keep writes a file that fails to where it stays.
func (d *damager) keep(t *testing.T, file []byte) {
	f, err := os.CreateTemp("", "gm-damaged-"+d.name+"-*.parquet")
	if err != nil {
		t.Error(err)
		return
	}
	_, err = f.Write(file)
	t.Logf("kept as %s: %v, %v", f.Name(), err, f.Close())
}

func allocated() uint64 { return read("/gc/heap/allocs:bytes") }
func heap() uint64      { return read("/memory/classes/heap/objects:bytes") }

func read(name string) uint64 {
	sample := []metrics.Sample{{Name: name}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// notNegative fails if a number of bytes, blocks, rows or times in what is printed as JSON is below zero.
func notNegative(t *testing.T, what string, figures any) {
	t.Helper()
	text, err := json.Marshal(figures)
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	var all any
	if err := json.Unmarshal(text, &all); err != nil {
		t.Errorf("%s: %v", what, err)
	}
	below := map[string]float64{}
	walk(all, "", func(key string, n float64) {
		if n < 0 && !mayBeNegative[key] {
			below[key] = min(below[key], n)
		}
	})
	for key, n := range below {
		t.Errorf("%s: %s is %v", what, key, n)
	}
}

// mayBeNegative are the figures that are differences, handles, or rows that there may not be.
var mayBeNegative = map[string]bool{
	"stream": true, "unexplained_bytes": true, "unexplained_share": true, "others_bytes": true, "mem_reduction_ratio": true, "row": true,
}

func walk(v any, key string, visit func(key string, n float64)) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			walk(value, key, visit)
		}
	case []any:
		for _, value := range v {
			walk(value, key, visit)
		}
	case float64:
		visit(key, v)
	}
}
