package tools

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// queryBlock is a query of formats/README.md: its title and its text.
var queryBlock = regexp.MustCompile("(?s)```sql\n-- ([^\n]*)\n(.*?)```")

// TestQueriesOfTraces reads the queries about traces and plans: each takes the tensors of one level, and keeps devices apart. Captures have
// rows of both levels, which a sum over all rows counts twice.
func TestQueriesOfTraces(t *testing.T) {
	text, err := os.ReadFile("../formats/README.md")
	if err != nil {
		t.Fatal(err)
	}
	queries := queryBlock.FindAllStringSubmatch(string(text), -1)
	if len(queries) < 10 {
		t.Fatalf("only %d queries were found", len(queries))
	}
	trace := 0
	for _, q := range queries {
		title, sql := q[1], q[2]
		ofTrace := strings.Contains(sql, "'trace.parquet'")
		if ofTrace {
			trace++
		}
		for _, alloc := range regexp.MustCompile(`op = 'alloc'[^)]*?(?:GROUP|\))`).FindAllString(sql, -1) {
			if !strings.Contains(alloc, "level = 'framework'") {
				t.Errorf("%s: it adds up the rows of both levels: %s", title, alloc)
			}
		}
		if (ofTrace || strings.Contains(sql, "'plan.parquet'") && strings.Contains(sql, "sum(")) &&
			!regexp.MustCompile(`(?:PARTITION|GROUP) BY device`).MatchString(sql) {
			t.Errorf("%s: it adds up devices", title)
		}
	}
	if trace < 3 {
		t.Errorf("only %d queries are about traces", trace)
	}
}

// TestQueries has DuckDB run all queries on a capture, on a snapshot, and on a recording of two devices, and compares them with what gm reads.
// "make interop" installs DuckDB; without it the test is skipped.
func TestQueries(t *testing.T) {
	dependOnSources(t)
	interop, err := filepath.Abs("../formats/interop")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(interop, "node_modules")); err != nil {
		t.Skip("DuckDB is not installed: make interop does that")
	}
	for name, recording := range map[string]string{
		"capture": "captures/opt1.3b.parquet", "snapshot": "snapshots/gpt2.pickle.gz", "midway": "snapshots/streams-cut.pickle.gz",
		"two devices": "settings/two-devices.pickle.gz",
	} {
		t.Run(name, func(t *testing.T) {
			c := exec.Command("sh", "-ec", `
				go run "$INTEROP" -sample "$OUT"
				case "$IN" in *.parquet) cp "$IN" "$OUT/trace.parquet" ;; *) gmtrace import -o "$OUT/trace.parquet" "$IN" ;; esac
				gmplan -o "$OUT/plan.parquet" "$OUT/trace.parquet"
				set -- "$OUT/trace.parquet" "$OUT/plan.parquet" "$OUT/graph.parquet" "$OUT/schedule.parquet"
				go run "$INTEROP" "$@" >"$OUT/expected.json"
				node "$INTEROP/check.mjs" "$@" "$OUT/expected.json" "$INTEROP/../README.md"`)
			in, err := filepath.Abs("../testdata/" + recording)
			if err != nil {
				t.Fatal(err)
			}
			c.Env = append(os.Environ(), "INTEROP="+interop, "OUT="+t.TempDir(), "IN="+in)
			if out, err := c.CombinedOutput(); err != nil || !strings.Contains(string(out), "as expected") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
