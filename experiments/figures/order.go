package main

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gm/internal/models/randwire"
	"gm/internal/models/simrd"
	"gm/internal/order"
	"gm/internal/order/papers"
	orders "gm/internal/order/solve"
	"gm/internal/plan/ordering"
	"gm/internal/swap"
)

// What orders of operators must come to: the peak above the bound, and the time to find it.
const (
	orderGap       = 0.5 // per cent
	logTime        = 2 * time.Second
	wiredTime      = time.Second
	wiredGraphs    = 30
	stepTime       = time.Second
	largeStepTime  = 5 * time.Second
	stepOperators  = 4000
	gapsMet        = 12 // of the published cells
	publishedSaved = 16.0
	publishedTotal = 35.7
)

// measureOrder orders DTR's logs, randomly wired networks, and exported steps of training.
func measureOrder(e *experiment) error {
	for _, measure := range []func() error{e.orderLogs, e.orderWired, e.orderSteps} {
		if err := measure(); err != nil {
			return err
		}
	}
	return nil
}

// ordered is a step that was ordered, with what lasts in all bytes.
type ordered struct {
	links         *order.Links
	base          int64
	program, peak int64 // bytes
	bound         int64
	method        string
	order         []int32
	took          time.Duration
}

// gap returns how far the peak is above the bound, in per cent.
func (o *ordered) gap() float64 { return 100 * float64(o.peak-o.bound) / float64(o.bound) }

// orderStep orders a step by a method in some time.
func orderStep(g *swap.Graph, method string, limit time.Duration) (*ordered, error) {
	m, err := orders.Lookup(method)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	start := time.Now()
	p := ordering.Problem(g)
	if err := p.Validate(); err != nil {
		return nil, err
	}
	l := order.Link(p)
	r, err := m.Find(ctx, l, orders.Default())
	if err != nil {
		return nil, err
	}
	took := time.Since(start)
	if err := l.Check(r.Order); err != nil {
		return nil, fmt.Errorf("BUG: %s: %w", method, err)
	}
	base := ordering.Lasting(g)
	program, _ := order.Peak(l.Loads(order.Program(p.Ops())))
	return &ordered{links: l, base: base, program: program + base, peak: r.Peak + base, bound: r.Bound + base, method: r.Method, order: r.Order, took: took}, nil
}

// orderLogs orders the steps of DTR's logs, of which GM_SHARED has a folder.
func (e *experiment) orderLogs() error {
	files, err := filepath.Glob(filepath.Join(os.Getenv("GM_SHARED"), "graphs", "dtr", "*.log.gz"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		e.table.Add("order DTR's logs", "no logs in GM_SHARED/graphs/dtr", "", "not measured")
	}
	for _, file := range files {
		g, err := readLog(file)
		if err != nil {
			return err
		}
		o, err := orderStep(g, "auto", logTime)
		if err != nil {
			return fmt.Errorf("%s: %w", g.Name, err)
		}
		e.add("order "+g.Name, fmt.Sprintf("%d operators: %s, program %s, bound %s, gap %.3f %%, %s", len(g.Ops), mib(o.peak), mib(o.program), mib(o.bound), o.gap(),
			o.took.Round(time.Millisecond)), fmt.Sprintf("%.1f %%, %s", orderGap, logTime), o.gap() <= orderGap && o.took <= logTime+logTime/10)
	}
	return nil
}

func readLog(file string) (*swap.Graph, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("unpack %s: %w", file, err)
	}
	return simrd.Read(z, strings.TrimSuffix(filepath.Base(file), ".log.gz"))
}

// orderWired orders randomly wired networks, WS(40,4,.75): each is to be proven optimal.
func (e *experiment) orderWired() error {
	var program, peak, bound, worst float64
	proven := 0
	for seed := range uint64(wiredGraphs) {
		g := randwire.Graph(40, 4, 0.75, 1<<20, seed)
		o, err := orderStep(g, "auto", 10*time.Second)
		if err != nil {
			return fmt.Errorf("%s: %w", g.Name, err)
		}
		lpmf, err := orderStep(g, "lpmf", time.Second)
		if err != nil {
			return err
		}
		program += float64(lpmf.peak) / (1 << 20) / wiredGraphs
		peak += float64(o.peak) / (1 << 20) / wiredGraphs
		bound += float64(lpmf.bound) / (1 << 20) / wiredGraphs
		worst = max(worst, o.took.Seconds())
		if o.peak == o.bound {
			proven++
		}
	}
	e.add("order randwire WS(40,4,.75)", fmt.Sprintf("%d of %d proven optimal, mean %.1f tensors (lpmf %.1f, cuts alone %.1f), longest %.3f s",
		proven, wiredGraphs, peak, program, bound, worst), fmt.Sprintf("all, %s", wiredTime), proven == wiredGraphs && worst <= wiredTime.Seconds())
	return nil
}

// rivalsOf orders a step by the methods that auto is compared with, in bytes; a method that does not solve it is left out.
func rivalsOf(g *swap.Graph) (map[string]int64, error) {
	peaks := map[string]int64{}
	for _, m := range orders.Methods() {
		if m.Name == "auto" || m.Name == "program" {
			continue
		}
		o, err := orderStep(g, m.Name, 10*time.Second)
		if errors.Is(err, papers.ErrLarge) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.Name, err)
		}
		peaks[m.Name] = o.peak
	}
	return peaks, nil
}

// textOf lists the peaks of rivals.
func textOf(peaks map[string]int64) string {
	var parts []string
	for _, m := range orders.Methods() {
		if peak, ok := peaks[m.Name]; ok {
			parts = append(parts, m.Name+" "+mib(peak))
		}
	}
	return strings.Join(parts, ", ")
}

// least returns the lowest peak of the rivals.
func least(peaks map[string]int64) int64 {
	var all []int64
	for _, peak := range peaks {
		all = append(all, peak)
	}
	return slices.Min(all)
}

// mib returns bytes as MiB.
func mib(bytes int64) string { return fmt.Sprintf("%.1f", float64(bytes)/(1<<20)) }
