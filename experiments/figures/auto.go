package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"time"

	"gm/internal/swap"
	"gm/internal/swap/link"
	"gm/internal/swap/policy"
	"gm/internal/swap/simulate"
	"gm/internal/swap/store"
)

// autoBlocks are recorded steps of third-party models in testdata/steps, and which of their modules a person would have recomputed.
var autoBlocks = []struct{ name, block string }{
	{"vit", `^blocks\.\d+`},
	{"swin", `^layers\.\d+\.blocks\.\d+`},
	{"convnext", `^stages\.\d+\.blocks\.\d+`},
	{"efficientnet", `^blocks\.\d+\.\d+`},
	{"resnet50", `^layer\d+\.\d+`},
	{"maskrcnn", `^backbone\.body\.layer\d+\.\d+`},
	{"gpt2xl", `^transformer\.h\.\d+`},
	{"llama", `^model\.layers\.\d+`},
	{"bert", `^bert\.encoder\.layer\.\d+`},
}

// autoRatios are amounts of memory, of the peak with nothing moved.
var autoRatios = []float64{0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9}

// byHandPolicy is what programs do with torch.utils.checkpoint.
const byHandPolicy = "checkpoint"

// autoCell is a step in an amount of memory on a link.
type autoCell struct {
	graph  string
	link   string
	device int64
	auto   time.Duration
	rival  time.Duration // the fastest of the others
	name   string        // its policy
	quick  time.Duration // with which more memory is never slower; 0 where it has no schedule
	prompt time.Duration // by the policy that gmswap run begins with; likewise
	took   time.Duration // planning that
	byHand time.Duration // with each block recomputed from its input; 0 where that does not fit
}

func (c autoCell) ratio() float64 { return float64(c.auto) / float64(c.rival) }

// measureAuto adds how auto's steps compare with the fastest of the other policies', a checkpoint of each block of the model included, on two links.
func measureAuto(e *experiment) error {
	slow, err := link.Even("12 GB/s", 12e9)
	if err != nil {
		return err
	}
	var cells []autoCell
	for _, b := range autoBlocks {
		recorded, err := store.ReadGraph("testdata/steps/" + b.name + ".parquet")
		if err != nil {
			return err
		}
		relabel(recorded.Graph, regexp.MustCompile(b.block))
		for _, l := range []*link.Link{link.Default(), slow} {
			measured, err := autoCells(recorded.Graph, l)
			if err != nil {
				return fmt.Errorf("%s: %w", b.name, err)
			}
			for i := range measured {
				measured[i].graph, measured[i].link = b.name, l.Device
			}
			cells = append(cells, measured...)
			worst := slices.MaxFunc(measured, func(a, b autoCell) int { return cmp.Compare(a.ratio(), b.ratio()) })
			text := fmt.Sprintf("at most %.4f of the fastest other one (%s) in %d amounts of memory", worst.ratio(), worst.name, len(measured))
			for _, c := range measured {
				if c.byHand > 0 {
					text += fmt.Sprintf("; %.3f of a checkpoint's in %.1f GB", float64(c.auto)/float64(c.byHand), float64(c.device)/1e9)
					break // in the least memory that it fits
				}
			}
			e.add(fmt.Sprintf("auto's step, %s, %s", b.name, l.Device), text, "1", worst.ratio() <= 1)
		}
	}
	slower := slices.DeleteFunc(slices.Clone(cells), func(c autoCell) bool { return c.ratio() <= 1 })
	e.add("auto's step beside all other policies'", fmt.Sprintf("slower in %d of %d", len(slower), len(cells)), "0", len(slower) == 0)
	later, most := 0, 0.0
	for _, c := range cells {
		if c.quick > c.auto {
			later++
		}
		most = max(most, float64(c.quick)/float64(c.auto))
	}
	e.add("quick's step beside auto's", fmt.Sprintf("at most %.4f, slower in %d of %d", most, later, len(cells)), "", true)
	worst, took := 0.0, time.Duration(0)
	for _, c := range cells {
		worst, took = max(worst, float64(c.prompt)/float64(c.auto)), max(took, c.took)
	}
	e.add("prompt's step beside auto's", fmt.Sprintf("at most %.4f; planned in at most %v", worst, took.Round(time.Millisecond)), "", true)
	for _, c := range slower {
		fmt.Printf("%s, %s, %.2f GB: auto %v, %s %v\n", c.graph, c.link, float64(c.device)/1e9, c.auto, c.name, c.rival)
	}
	return nil
}

// relabel numbers the layers of a graph by the blocks that the names of its modules say.
func relabel(g *swap.Graph, block *regexp.Regexp) {
	numbers := map[string]int32{}
	number := func(name string) int32 {
		found := block.FindString(name)
		if found == "" {
			return -1
		}
		if _, known := numbers[found]; !known {
			numbers[found] = int32(len(numbers))
		}
		return numbers[found]
	}
	for i := range g.Ops {
		g.Ops[i].Layer = number(g.Ops[i].Name)
	}
	inputs := map[int32]bool{}
	for i := range g.Tensors {
		t := &g.Tensors[i]
		t.Layer = number(t.Name)
		if t.Role == swap.LayerInput {
			t.Role = swap.Inner
		}
		if t.Layer >= 0 && !inputs[t.Layer] {
			t.Role, inputs[t.Layer] = swap.LayerInput, true // it is saved first
		}
	}
}

// autoCells plans a step in some amounts of memory, and in what a checkpoint of each block takes, by all policies.
func autoCells(g *swap.Graph, l *link.Link) ([]autoCell, error) {
	limits := swap.Limits{Host: math.MaxInt64, Link: l}
	devices, err := autoDevices(g, limits)
	if err != nil {
		return nil, err
	}
	cells := make([]autoCell, len(devices))
	for i, device := range devices {
		cells[i].device = device
	}
	for _, p := range policy.Policies() {
		var failed error
		begin := time.Now()
		p.PlanEach(g, limits, devices, func(i int, s *swap.Schedule, err error) {
			if err == nil {
				var r *simulate.Result
				if r, err = simulate.Run(g, s.Actions, l, nil); err == nil {
					cells[i].add(p.Name, r.Step, time.Since(begin))
				}
			}
			if _, short := errors.AsType[*policy.ShortError](err); err != nil && !short {
				failed = err
			}
			begin = time.Now()
		})
		if failed != nil {
			return nil, failed
		}
	}
	return slices.DeleteFunc(cells, func(c autoCell) bool { return c.rival == 0 }), nil
}

// add notes the time of a step by a policy, and that of planning it.
func (c *autoCell) add(name string, step, took time.Duration) {
	switch name {
	case byHandPolicy:
		c.byHand = step
	case "quick":
		c.quick = step
	case "prompt":
		c.prompt, c.took = step, took
	}
	switch {
	case name == "auto":
		c.auto = step
	case c.rival == 0 || step < c.rival:
		c.rival, c.name = step, name
	}
}

// autoDevices returns amounts of memory in ascending order.
func autoDevices(g *swap.Graph, limits swap.Limits) ([]int64, error) {
	peak := slices.Max(g.Plain())
	var devices []int64
	for _, ratio := range autoRatios {
		devices = append(devices, int64(ratio*float64(peak)))
	}
	byHand, err := policy.Lookup(byHandPolicy)
	if err != nil {
		return nil, err
	}
	limits.Device = peak
	s, err := byHand.Plan(g, limits)
	if err != nil {
		return nil, err
	}
	r, err := simulate.Run(g, s.Actions, limits.Link, nil)
	if err != nil {
		return nil, err
	}
	devices = append(devices, r.Peak)
	slices.Sort(devices)
	return slices.Compact(devices), nil
}
