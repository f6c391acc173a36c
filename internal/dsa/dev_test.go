package dsa

import (
	"bufio"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

func devLoad(t testing.TB, f string, align int64) *Problem {
	fd, err := os.Open(f)
	if err != nil { t.Fatal(err) }
	defer fd.Close()
	var r io.Reader = fd
	if strings.HasSuffix(f, ".gz") { r, _ = gzip.NewReader(fd) }
	p := &Problem{Align: align}
	sc := bufio.NewScanner(r)
	sc.Scan()
	for sc.Scan() {
		c := strings.Split(sc.Text(), ",")
		a, _ := strconv.ParseInt(c[1], 10, 64)
		b, _ := strconv.ParseInt(c[2], 10, 64)
		s, _ := strconv.ParseInt(c[3], 10, 64)
		p.Start = append(p.Start, a); p.End = append(p.End, b); p.Size = append(p.Size, s)
	}
	return p
}

func TestDevKeys(t *testing.T) {
	var files []string
	a, _ := filepath.Glob("/tmp/dsaw/*.csv")
	b, _ := filepath.Glob("/work/shared/dsa/*")
	files = append(append(files, a...), b...)
	only := os.Getenv("ONLY")
	for _, f := range files {
		if only != "" && !strings.Contains(f, only) { continue }
		al := int64(512)
		if strings.Contains(f, "shared") { al = 1 }
		p := devLoad(t, f, al)
		t0 := time.Now()
		in := newInstance(p)
		prep := time.Since(t0)
		fmt.Printf("%-28s n=%d S=%d parts=%d LB=%d prep=%v\n   ", filepath.Base(f), in.len(), in.sections(), len(in.components()), in.bound*al, prep.Round(time.Millisecond))
		var w workspace
		out := make([]int64, in.len())
		try := func(name string, m method) {
			t0 := time.Now()
			peak, _ := m.layout(in, &w, func(int64) bool { return false }, out)
			fmt.Printf(" %s %+.3f%% %.3fs", name, 100*float64(peak-in.bound)/float64(in.bound), time.Since(t0).Seconds())
		}
		for _, k := range []key{"A", "S", "W", "V", "Z", "TWA", "TAW", "TZ", "WZ", "TWZ"} {
			try(string(k), skylineBy{k})
		}
		try("online", onlineBestFit{})
		if in.len() < 31000 {
			try("ffZ", orderedFit{by: "ZW"})
			try("bfZ", orderedFit{by: "ZW", smallest: true})
			try("ffA", orderedFit{by: "A"})
			try("bfA", orderedFit{by: "A", smallest: true})
			try("ffW", orderedFit{by: "WZ"})
		}
		fmt.Println()
	}
	_ = context.Background
}

func TestDevRandom(t *testing.T) {
	only := os.Getenv("ONLY")
	rounds, _ := strconv.Atoi(os.Getenv("ROUNDS"))
	var files []string
	a, _ := filepath.Glob("/tmp/dsaw/*.csv")
	b, _ := filepath.Glob("/work/shared/dsa/*")
	files = append(append(files, a...), b...)
	for _, f := range files {
		if !strings.Contains(f, only) { continue }
		al := int64(512)
		if strings.Contains(f, "shared") { al = 1 }
		p := devLoad(t, f, al)
		in := newInstance(p)
		var ms []member
		for _, k := range []key{"A", "S", "W", "V", "TWA", "TAW", "Z", "TZ"} {
			ms = append(ms, member{string(k), skylineBy{k}})
		}
		w := make([]workspace, 2)
		pf := portfolio{members: ms, rounds: rounds, work: 1 << 60}
		for _, part := range in.components() {
			r := newRace(context.Background(), part, in.bound, pf.turns(part))
			t0 := time.Now()
			win, _ := r.run(func(turn int) member { 
				if l := r.lead.Load(); l != nil && turn%100 == 0 && os.Getenv("V") != "" { fmt.Println(turn, l.turn, l.peak, float64(l.peak-in.bound)*100/float64(in.bound)) }
				return pf.at(turn) }, w)
			fmt.Printf("%s %+.4f%% turn %d of %d %.2fs\n", filepath.Base(f), float64(win.peak-part.bound)*100/float64(part.bound), win.turn, r.next.Load(), time.Since(t0).Seconds())
		}
	}
}
