package tools

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gm/formats/column"
	"gm/formats/summary"
)

// fleetRows reads testdata/fleet, by what was run.
func fleetRows(t *testing.T) map[string][]*summary.Summary {
	t.Helper()
	files, err := filepath.Glob("../testdata/fleet/week=*/*.parquet")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]*summary.Summary{}
	for _, file := range files {
		source, err := column.OpenSource(file)
		if err != nil {
			t.Fatal(err)
		}
		r, err := summary.NewReader(source, source.Size(), file)
		if err == nil {
			err = summary.Each(r, func(s *summary.Summary) error { rows[s.Name] = append(rows[s.Name], s); return nil })
		}
		if err = errors.Join(err, source.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if len(rows) < 5 {
		t.Fatalf("%d names of jobs in %d files", len(rows), len(files))
	}
	for _, all := range rows {
		slices.SortFunc(all, func(a, b *summary.Summary) int { return int((a.StartNS - b.StartNS) / 1e9) })
	}
	return rows
}

// expected is what gm finds for lines of the answers: one job a week runs under each name.
func expected(rows map[string][]*summary.Summary) []string {
	gib := func(bytes float64) string { return fmt.Sprintf("%g", math.Round(bytes/(1<<30)*100)/100) }
	var all []string
	for name, jobs := range rows {
		saved, torch, before := 0.0, 0.0, int64(0)
		for _, s := range jobs {
			saved, torch = saved+float64(s.Torch-s.Expandable), torch+float64(s.Torch)
		}
		last := jobs[len(jobs)-1]
		for _, s := range jobs[:len(jobs)-1] {
			before = max(before, s.Peak)
		}
		all = append(all, fmt.Sprintf("name=%s gpus=%d gib_a_gpu=%s percent=%g", name, len(jobs), gib(saved/float64(len(jobs))), math.Round(1000*saved/torch)/10))
		regressed := fmt.Sprintf("name=%s before=%s now=%s", name, gib(float64(before)), gib(float64(last.Peak)))
		if float64(last.Peak) > 1.05*float64(before) {
			all = append(all, regressed)
		}
		if slope, fits := trend(jobs); slope > 0 && fits > 0.5 && float64(last.Torch)+10*slope > float64(last.Capacity) {
			left := (float64(last.Capacity) - float64(last.Torch)) / slope
			all = append(all, fmt.Sprintf("name=%s gib_a_week=%s now=%s weeks_left=%g", name, gib(slope), gib(float64(last.Torch)), math.Round(10*left)/10))
		}
	}
	return all
}

// trend returns the slope of what jobs need, in bytes a week, and the part of its variance that the slope explains.
func trend(jobs []*summary.Summary) (slope, explained float64) {
	var x, y float64
	n := float64(len(jobs))
	week := func(s *summary.Summary) float64 { return float64(s.StartNS) / 6.048e14 }
	for _, s := range jobs {
		x, y = x+week(s)/n, y+float64(s.Torch)/n
	}
	var xx, xy, yy float64
	for _, s := range jobs {
		dx, dy := week(s)-x, float64(s.Torch)-y
		xx, xy, yy = xx+dx*dx, xy+dx*dy, yy+dy*dy
	}
	return xy / xx, xy * xy / xx / yy
}

// TestFleetQueries has DuckDB answer the queries of docs/fleet.md on testdata/fleet, and compares with what gm reads.
func TestFleetQueries(t *testing.T) {
	text, err := os.ReadFile("../docs/fleet.md")
	if err != nil {
		t.Fatal(err)
	}
	queries := queryBlock.FindAllStringSubmatch(string(text), -1)
	if len(queries) < 11 {
		t.Fatalf("%d queries were found", len(queries))
	}
	if _, err := os.Stat("../formats/interop/node_modules"); err != nil {
		t.Skip("DuckDB is not installed: make interop does that")
	}
	out, err := exec.Command("node", "../formats/interop/fleet.mjs", "../testdata/fleet", "../docs/fleet.md").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range expected(fleetRows(t)) {
		if !strings.Contains(string(out), "\n"+want+"\n") {
			t.Errorf("%q is not among the answers:\n%s", want, out)
		}
	}
	for _, q := range queries[1 : len(queries)-1] { // the last finds nothing, as the page says
		if !regexp.MustCompile(regexp.QuoteMeta("# "+q[1]) + `\n[a-z_]+=`).Match(out) {
			t.Errorf("%s: no answer", q[1])
		}
	}
	if !strings.HasSuffix(string(out), "# "+queries[len(queries)-1][1]+"\n") {
		t.Errorf("the last query has an answer, or is not the last:\n%s", out)
	}
}
