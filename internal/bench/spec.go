// Package bench compares allocators on programs.
package bench

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"gm/internal/bench/replay"
	"gm/internal/blocks"
	"gm/internal/cuda"
	"gm/internal/cuda/sim"
	"gm/internal/report/units"
	"gm/internal/torch/allocconf"
)

// Spec is an allocator by name with its settings.
type Spec struct {
	Text string // as it was written: name, or name:setting=value,setting=value
	name string
	opts string
}

// setup is what an allocator may be made from.
type setup struct {
	program *replay.Program
	dev     cuda.Device
	opts    string
}

// maker is an allocator that can be asked for by name.
type maker struct {
	name  string
	about string
	make  func(ctx context.Context, s setup) (blocks.Allocator, error)
}

// makers lists the allocators in the order in which a table shows them.
func makers() []maker {
	return []maker{
		{"floor", "the bound of all: as many bytes as are live", makeFloor},
		{"planned", "offsets solved beforehand, or those of the plan that was read", makePlanned},
		{"stitch", "gm's live allocator: free pieces are mapped together; slack=X, pieces=N, parts=N, piece_min=SIZE, piece_max=SIZE", makeStitch},
		{"gmlake", "stitching, Algorithm 1 of the GMLake paper; frag_limit=SIZE, stitch_limit=SIZE", makeGMLake},
		{"gmlake-code", "stitching as GMLake's code does it; fragLimit=SIZE, reuseLimit=X, autoGC=GIB, defragLevel=N", makeGMLakeCode},
		{"expandable", "PyTorch with expandable_segments:True; settings as of torch", makeExpandable},
		{"torch", "PyTorch's caching allocator; settings of PYTORCH_CUDA_ALLOC_CONF, those of the recording if none are given", makeTorch},
		{"native", "cudaMalloc and cudaFree for every request", makeNative},
	}
}

// Names returns a line for each allocator: its name and what it is.
func Names() []string {
	var lines []string
	for _, m := range makers() {
		lines = append(lines, fmt.Sprintf("%-12s %s", m.name, m.about))
	}
	return lines
}

// AllSpecs returns every allocator with its default settings.
func AllSpecs() []Spec {
	var specs []Spec
	for _, m := range makers() {
		specs = append(specs, Spec{Text: m.name, name: m.name})
	}
	return specs
}

// ParseSpecs reads a list such as "torch,gmlake:frag_limit=128MiB,stitch_limit=80GiB,native". What has a "=", or a
// ":" after no allocator's name, is a setting of the allocator before it.
func ParseSpecs(text string) ([]Spec, error) {
	var specs []Spec
	for _, part := range allocconf.Split(text) {
		part = strings.TrimSpace(part)
		name, opts, hasOpts := strings.Cut(part, ":")
		setting := strings.Contains(name, "=") || hasOpts && len(specs) > 0 && !slices.Contains(names(), name)
		switch {
		case setting && len(specs) == 0:
			return nil, fmt.Errorf("setting %q comes before any allocator", part)
		case setting:
			last := &specs[len(specs)-1]
			if last.opts == "" {
				last.opts, last.Text = part, last.name+":"+part
			} else {
				last.opts, last.Text = last.opts+","+part, last.Text+","+part
			}
		case !slices.ContainsFunc(makers(), func(m maker) bool { return m.name == name }):
			return nil, fmt.Errorf("unknown allocator %q, expected one of %s", name, strings.Join(names(), ", "))
		case hasOpts:
			specs = append(specs, Spec{Text: part, name: name, opts: opts})
		default:
			specs = append(specs, Spec{Text: name, name: name})
		}
	}
	for _, s := range specs {
		if err := s.check(); err != nil {
			return nil, fmt.Errorf("allocator %s: %w", s.Text, err)
		}
	}
	return specs, nil
}

func names() []string {
	var all []string
	for _, m := range makers() {
		all = append(all, m.name)
	}
	return all
}

// check makes the allocator once, for no program, to find out whether its settings are right.
func (s Spec) check() error {
	_, err := s.Make(context.Background(), &replay.Program{}, sim.New(0, sim.CostTable{}))
	return err
}

// Name returns the allocator's name without its settings.
func (s Spec) Name() string { return s.name }

// Make makes the allocator for a program on a device. A *blocks.OOMError means that the arenas of a plan do not fit.
func (s Spec) Make(ctx context.Context, p *replay.Program, dev cuda.Device) (blocks.Allocator, error) {
	i := slices.IndexFunc(makers(), func(m maker) bool { return m.name == s.name })
	return makers()[i].make(ctx, setup{program: p, dev: dev, opts: s.opts})
}

func makeTorch(_ context.Context, s setup) (blocks.Allocator, error) {
	conf, err := s.torchConf()
	if err != nil {
		return nil, err
	}
	if s.opts == "" {
		conf.Expandable = false
	}
	return blocks.NewTorch(s.dev, conf)
}

func makeExpandable(_ context.Context, s setup) (blocks.Allocator, error) {
	conf, err := s.torchConf()
	if err != nil {
		return nil, err
	}
	conf.Expandable = true
	return blocks.NewTorch(s.dev, conf)
}

// align returns what sizes are rounded up to; the program that settings are checked with has none.
func (s setup) align() int64 { return max(s.program.Align, 1) }

// torchConf returns the settings that were given, or else those of the recording.
func (s setup) torchConf() (allocconf.Conf, error) {
	if s.opts == "" {
		conf, _ := allocconf.Recorded(s.program.AllocConf)
		return conf, nil
	}
	return allocconf.Parse(s.opts)
}

func makeNative(_ context.Context, s setup) (blocks.Allocator, error) {
	return blocks.NewNative(s.dev), s.none()
}

func makeFloor(_ context.Context, s setup) (blocks.Allocator, error) {
	if err := s.none(); err != nil {
		return nil, err
	}
	return blocks.NewFloor(s.dev, s.align())
}

func makeStitch(_ context.Context, s setup) (blocks.Allocator, error) {
	conf := blocks.DefaultStitchConf()
	if err := s.settings(map[string]any{
		"slack": &conf.Slack, "pieces": &conf.Pieces, "parts": &conf.Parts,
		"piece_min": (*units.Bytes)(&conf.PieceMin), "piece_max": (*units.Bytes)(&conf.PieceMax),
	}); err != nil {
		return nil, err
	}
	return blocks.NewStitch(s.dev, conf)
}

func makeGMLake(_ context.Context, s setup) (blocks.Allocator, error) {
	conf := blocks.DefaultGMLakeConf()
	if err := s.settings(map[string]any{
		"frag_limit": (*units.Bytes)(&conf.FragLimit), "stitch_limit": (*units.Bytes)(&conf.StitchLimit),
	}); err != nil {
		return nil, err
	}
	return blocks.NewGMLake(s.dev, conf)
}

func makeGMLakeCode(_ context.Context, s setup) (blocks.Allocator, error) {
	conf := blocks.DefaultGMLakeCodeConf()
	err := s.settings(map[string]any{
		"fragLimit": (*units.Bytes)(&conf.FragLimit), "reuseLimit": &conf.ReuseLimit, "autoGC": &conf.AutoGC, "defragLevel": &conf.Level,
	})
	if err != nil {
		return nil, err
	}
	if conf.ReuseLimit < 1 {
		return nil, fmt.Errorf("setting reuseLimit: %g is below 1", conf.ReuseLimit)
	}
	if conf.Level < 0 || conf.Level > 2 {
		return nil, fmt.Errorf("setting defragLevel: %d is neither 0, 1 nor 2", conf.Level)
	}
	return blocks.NewGMLakeCode(s.dev, conf)
}

// makePlanned solves a plan unless the program came with one. What the plan does not hold goes to PyTorch's allocator.
func makePlanned(ctx context.Context, s setup) (blocks.Allocator, error) {
	if err := s.none(); err != nil {
		return nil, err
	}
	placements, arenas := s.program.Placements, s.program.Arenas
	if placements == nil {
		var err error
		if placements, arenas, err = solve(ctx, s.program); err != nil {
			return nil, err
		}
	}
	return blocks.NewPlanned(s.dev, placements, arenas, s.align())
}

// none refuses settings.
func (s setup) none() error { return s.settings(nil) }

// settings stores each given setting where its name points: a size, a whole number, or a number.
func (s setup) settings(known map[string]any) error {
	if s.opts == "" {
		return nil
	}
	for _, setting := range strings.Split(s.opts, ",") {
		name, value, _ := strings.Cut(setting, "=")
		var err error
		switch p := known[strings.TrimSpace(name)].(type) {
		case *units.Bytes:
			*p, err = units.ParseBytes(value)
		case *int64:
			if *p, err = strconv.ParseInt(value, 10, 32); err == nil && *p < 0 {
				err = fmt.Errorf("%q is below 0", value)
			}
		case *float64:
			if *p, err = strconv.ParseFloat(value, 64); err == nil && !(*p >= 0 && *p <= math.MaxInt32) {
				err = fmt.Errorf("%q is not a number from 0", value)
			}
		default:
			var all []string
			for k := range known {
				all = append(all, k)
			}
			sort.Strings(all)
			return fmt.Errorf("unknown setting %q, expected one of [%s]", name, strings.Join(all, " "))
		}
		if err != nil {
			return fmt.Errorf("setting %s: %w", name, err)
		}
	}
	return nil
}
