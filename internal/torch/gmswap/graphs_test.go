package gmswap

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"gm/internal/swap/store"
)

// TestBundledGraphs compares the graphs of testdata/graphs with what the exporter counted by itself.
func TestBundledGraphs(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	f, err := os.Open(filepath.Join(root, "experiments/order/results/graphs.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root, "testdata/graphs/*.parquet"))
	if err != nil || len(files) != len(rows)-1 {
		t.Fatalf("%d graphs, %d rows, %v", len(files), len(rows)-1, err)
	}
	for _, row := range rows[1:] {
		column := func(name string) string { return row[slices.Index(rows[0], name)] }
		number := func(name string) int64 {
			n, err := strconv.ParseInt(column(name), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		name := column("model")
		if column("attention") == "math" {
			name += "-math"
		}
		name += "-" + column("batch") + "-" + column("optimizer")
		for _, flag := range []string{"keep", "over"} {
			if column(flag) == "1" {
				name += "-" + flag
			}
		}
		g, err := store.ReadGraph(filepath.Join(root, "testdata/graphs", name+".parquet"))
		if err != nil {
			t.Error(err)
			continue
		}
		if peak := slices.Max(g.Plain()); !g.Complete || peak != number("peak_bytes") || int64(len(g.Ops)-1) != number("operators") {
			t.Errorf("%s: complete %t, %d bytes, %d operators, want %v", name, g.Complete, peak, len(g.Ops)-1, row)
		}
	}
}
