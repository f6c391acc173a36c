package main

import (
	"fmt"
	"math"
	"os"
	"time"

	"gm/internal/models/graphs"
	"gm/internal/report"
)

// dymemBatches are the networks of figure 13 with batches that the paper's text names, and those around them.
var dymemBatches = []struct {
	network string
	linear  bool
	batches []int
}{
	{"alexnet", true, []int{128, 256, 512}}, {"vgg-16", true, []int{32, 64, 128}}, {"resnet-50", false, []int{50, 100, 150}},
	{"resnet-101", false, []int{50, 100, 150}}, {"resnet-152", false, []int{50, 100, 150}}, {"inception-v4", false, []int{32, 64, 128}},
}

// dymemThroughput is figure 13: images a second in 12 GB.
func dymemThroughput(e *experiment) error {
	table := report.Table{Titles: append(append([]string{"figure 13: images/s in 12 GB"}, dymemPolicies...), "dymem, vdnn-all", "dymem, vdnn-conv")}
	var linear, others gains
	for _, n := range dymemBatches {
		for _, batch := range n.batches {
			spec := fmt.Sprintf("%s,batch=%d", n.network, batch)
			rates, err := dymemRates(spec, batch)
			if err != nil {
				return fmt.Errorf("%s: %w", spec, err)
			}
			row := []string{spec}
			for _, rate := range rates {
				row = append(row, imagesPerSecond(rate))
			}
			all, conv := rates[dymem]/rates[vdnnAll]-1, rates[dymem]/rates[vdnnConv]-1
			table.Add(append(row, percent(all), percent(conv))...)
			switch {
			case n.linear:
				linear.add(conv)
			default:
				others.add(all)
			}
			if spec == "resnet-50,batch=100" {
				e.add("dymem: throughput of ResNet-50, 100 images, over vDNN", percent(all), "+42 %", all > 0.32 && all < 0.52)
			}
		}
	}
	e.add("dymem: that of all networks that are not linear, over vDNN", others.String(), "up to +42 %, none slower",
		others.least > 0 && others.most > 0.32 && others.most < 0.52)
	e.add("dymem: that of linear ones, over vDNN that copies for convolutions alone", linear.String(), "about the same",
		linear.least > -0.1 && linear.most < 0.1)
	return table.Write(os.Stdout)
}

// dymemRates returns images a second under each policy, 0 where there is no schedule.
func dymemRates(spec string, batch int) ([]float64, error) {
	m, err := graphs.Build(spec)
	if err != nil {
		return nil, err
	}
	var rates []float64
	for _, name := range dymemPolicies {
		run, err := dymemStep(m, name, dymemDevice)
		if err != nil {
			return nil, err
		}
		rate := 0.0
		if run != nil {
			rate = float64(batch) / run.result.Step.Seconds()
		}
		rates = append(rates, rate)
	}
	return rates, nil
}

func imagesPerSecond(rate float64) string {
	if rate == 0 {
		return "oom"
	}
	return fmt.Sprintf("%.1f", rate)
}

func percent(part float64) string {
	if math.IsInf(part, 0) {
		return ""
	}
	return fmt.Sprintf("%+.0f %%", 100*part)
}

// gains is a range of parts.
type gains struct {
	least, most float64
	some        bool
}

func (g *gains) add(part float64) {
	if !g.some {
		g.least, g.most, g.some = part, part, true
	}
	g.least, g.most = min(g.least, part), max(g.most, part)
}

func (g *gains) String() string { return percent(g.least) + " to " + percent(g.most) }

// dymemOverlap is figure 14: a step on slow convolutions, against one in which copies and layers take turns.
func dymemOverlap(e *experiment) error {
	table := report.Table{Titles: []string{"figure 14: seconds", "in turn", "vdnn-all", "less", "dymem", "less"}}
	best := 0.0
	for _, spec := range []string{"inception-v4,batch=128,workspace=0", "resnet-32,batch=100,image=224,workspace=0"} {
		m, err := graphs.Build(spec)
		if err != nil {
			return err
		}
		row := []string{spec, ""}
		var serial, step time.Duration
		for _, name := range []string{"vdnn-all", "dymem"} {
			run, err := dymemIn12GB(m, name)
			if err != nil {
				return err
			}
			step = run.result.Step
			if serial == 0 {
				serial = run.result.Compute + run.result.OutBusy + run.result.InBusy
				row[1] = fmt.Sprintf("%.2f", serial.Seconds())
			}
			row = append(row, fmt.Sprintf("%.2f", step.Seconds()), fmt.Sprintf("%.0f %%", 100*(1-step.Seconds()/serial.Seconds())))
		}
		best = max(best, 1-step.Seconds()/serial.Seconds())
		table.Add(row...)
	}
	e.add("dymem: time against copies and layers in turn", percent(-best)+" at best", "-46 % at best", best > 0.36 && best < 0.5)
	return table.Write(os.Stdout)
}
