package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"gm/internal/dsa"
	"gm/internal/dsa/solvers"
	"gm/internal/models/layouts"
	"gm/internal/report"
	"gm/internal/units"
)

// A layout of any size may exceed the bound by so much after so much time, in so much memory.
const (
	scaleExcess = 0.01
	scaleTime   = 10 * time.Second
	scaleMemory = 2 << 30
)

// scaleSizes are in buffers.
var scaleSizes = [...]int{10_000, 30_000, 100_000, 300_000, 1_000_000}

// measureScale lays out problems that grow, and draws how long that takes.
func measureScale(e *experiment) error {
	chart := report.Growth{Title: "time to 1.01 of the bound", X: "buffers", Y: "seconds"}
	for _, c := range []struct {
		name  string
		build func(n int, seed uint64) *dsa.Problem
	}{{"training", layouts.Training}, {"random", layouts.Random}} {
		curve := report.Curve{Name: c.name}
		for _, n := range scaleSizes {
			s, err := scale(c.build(n, 1))
			if err != nil {
				return fmt.Errorf("%s, %d buffers: %w", c.name, n, err)
			}
			curve.X, curve.Y = append(curve.X, float64(s.buffers)), append(curve.Y, s.took.Seconds())
			e.addScale(fmt.Sprintf("scale %s %d", c.name, n), s)
		}
		chart.Curves = append(chart.Curves, curve)
	}
	ends := []float64{float64(scaleSizes[0]), float64(scaleSizes[len(scaleSizes)-1])}
	target := scaleTime.Seconds()
	chart.Curves = append(chart.Curves, report.Curve{Name: "target", X: ends, Y: []float64{target, target}, Limit: true})
	return drawGrowth("scale", chart)
}

// scaled is what the layout of one problem took.
type scaled struct {
	buffers int
	took    time.Duration // until the peak was near enough to the bound, or until the end
	ratio   float64       // the peak then, over the bound
	memory  int64         // bytes: the largest resident set, with the problem
}

// scale runs the default solver until it is near enough to the bound.
func scale(p *dsa.Problem) (scaled, error) {
	s := scaled{buffers: p.Len()}
	solver := solvers.Auto()
	if err := resetPeak(); err != nil {
		return s, err
	}
	ctx, enough := context.WithCancel(context.Background())
	defer enough()
	start := time.Now()
	near := func(pr dsa.Progress) {
		if s.took == 0 && float64(pr.Peak) <= (1+scaleExcess)*float64(pr.Bound) {
			s.took = time.Since(start)
			enough()
		}
	}
	l, err := solver.Solve(ctx, p, dsa.Options{Progress: near})
	if err != nil {
		return s, err
	}
	if s.took == 0 {
		s.took = time.Since(start)
	}
	s.ratio = float64(l.Peak) / float64(l.Bound)
	s.memory, err = peakMemory()
	return s, err
}

func (e *experiment) addScale(name string, s scaled) {
	measured := fmt.Sprintf("%.4f of the bound, %.3f s, %.0f ns a buffer, %s",
		s.ratio, s.took.Seconds(), float64(s.took.Nanoseconds())/float64(s.buffers), units.Bytes(s.memory))
	target := fmt.Sprintf("%.2f, %s, %s", 1+scaleExcess, scaleTime, units.Bytes(scaleMemory))
	e.add(name, measured, target, s.ratio <= 1+scaleExcess && s.took <= scaleTime && s.memory <= scaleMemory)
}

// resetPeak makes the largest resident set what is needed now.
func resetPeak() error {
	runtime.GC()
	debug.FreeOSMemory()
	return os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
}

// peakMemory returns the largest resident set since, in bytes.
func peakMemory() (int64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	_, after, found := strings.Cut(string(status), "VmHWM:")
	kilobytes := int64(0)
	if _, err := fmt.Sscan(after, &kilobytes); err != nil || !found {
		return 0, fmt.Errorf("no VmHWM in /proc/self/status: %w", err)
	}
	return kilobytes << 10, nil
}

// drawGrowth writes out/NAME.png and out/NAME.svg.
func drawGrowth(name string, chart report.Growth) error {
	if err := os.MkdirAll("out", 0o777); err != nil {
		return err
	}
	for ending, write := range map[string]func(io.Writer, report.Growth) error{
		".png": report.WriteGrowthPNG, ".svg": report.WriteGrowthSVG,
	} {
		f, err := os.Create(filepath.Join("out", name+ending))
		if err != nil {
			return err
		}
		if err := write(f, chart); err != nil {
			f.Close()
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}
