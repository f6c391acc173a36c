package main

import (
	"fmt"
	"math"
	"os"
	"slices"
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

// speeds are the results of figure 13.
type speeds struct {
	linear, others gains // Dymem's throughput over vDNN's dynamic policy
	first, deep    int   // networks that are not linear in which Dymem is the fastest, of all
	faster         int   // linear networks in which SuperNeurons is faster than Dymem and vDNN
	out            int   // networks whose largest batch is too large for SuperNeurons
	slower         int   // networks whose largest batch runs slower under Dymem than their smallest
}

// dymemThroughput is figure 13: images a second in 12 GB.
func dymemThroughput(e *experiment) error {
	table := report.Table{Titles: append([]string{"figure 13: images/s in 12 GB"}, dymemPolicies...)}
	table.Titles = append(table.Titles, "dymem, vdnn-all", "dymem, vdnn-conv", "dymem, vdnn-dyn", "fastest")
	var s speeds
	for _, n := range dymemBatches {
		least, most := 0.0, 0.0
		for i, batch := range n.batches {
			spec := fmt.Sprintf("%s,batch=%d", n.network, batch)
			rates, err := dymemRates(spec, batch)
			if err != nil {
				return fmt.Errorf("%s: %w", spec, err)
			}
			row := []string{spec}
			for _, rate := range rates {
				row = append(row, imagesPerSecond(rate))
			}
			for _, vdnn := range rates[vdnnAll : vdnnDyn+1] {
				row = append(row, percent(rates[dymem]/vdnn-1))
			}
			table.Add(append(row, dymemPolicies[slices.Index(rates, slices.Max(rates))])...)
			s.add(n.linear, rates)
			if i == 0 {
				least = rates[dymem]
			}
			most = rates[dymem]
			if i == len(n.batches)-1 && rates[superNeurons] == 0 {
				s.out++
			}
			if spec == "resnet-50,batch=100" {
				gain := rates[dymem]/rates[vdnnDyn] - 1
				e.add("dymem: throughput of ResNet-50, 100 images, over vDNN", percent(gain), "+42 %", gain >= 0.42)
				gain = rates[dymem]/rates[vdnnAll] - 1
				e.add("dymem: the same, over vDNN that copies for all layers", percent(gain), "+42 %", gain >= 0.42)
			}
		}
		if most < least {
			s.slower++
		}
	}
	s.report(e)
	return table.Write(os.Stdout)
}

// add counts a network with a batch.
func (s *speeds) add(linear bool, rates []float64) {
	gain := rates[dymem]/rates[vdnnDyn] - 1
	if linear {
		s.linear.add(gain)
		if rates[superNeurons] > max(rates[dymem], rates[vdnnDyn]) {
			s.faster++
		}
		return
	}
	s.others.add(gain)
	s.deep++
	if rates[dymem] > max(rates[vdnnDyn], rates[superNeurons]) {
		s.first++
	}
}

// report adds what the paper's text says of figure 13.
func (s *speeds) report(e *experiment) {
	e.add("dymem: that of networks that are not linear, over vDNN", s.others.String(), "up to +42 %, none slower", s.others.least >= 0 && s.others.most >= 0.42)
	e.add("dymem: such networks and batches in which Dymem is faster than vDNN and SuperNeurons", fmt.Sprintf("%d of %d", s.first, s.deep), "all", s.first == s.deep)
	e.add("dymem: that of linear ones, over vDNN", s.linear.String(), "no slower", s.linear.least >= 0)
	e.add("dymem: linear networks and batches in which SuperNeurons is the fastest", fmt.Sprint(s.faster), "some", s.faster > 0)
	e.add("dymem: networks whose largest batch SuperNeurons cannot train", fmt.Sprintf("%d of %d", s.out, len(dymemBatches)), "all", s.out == len(dymemBatches))
	e.add("dymem: networks whose throughput falls with the batch, under Dymem", fmt.Sprintf("%d of %d", s.slower, len(dymemBatches)), "all",
		s.slower == len(dymemBatches))
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

// overlapPolicies are those of figure 14, with the variants of vDNN. The paper describes that which copies for all layers.
var overlapPolicies = []string{"vdnn-all", "vdnn-conv", "vdnn-dyn", "dymem"}

// dymemOverlap is figure 14: a step on slow convolutions, against one in which copies and layers take turns.
func dymemOverlap(e *experiment) error {
	table := report.Table{Titles: []string{"figure 14: seconds", "in turn"}}
	for _, name := range overlapPolicies {
		table.Titles = append(table.Titles, name, "less")
	}
	best := 0.0
	for _, n := range []struct {
		spec      string
		published float64 // overlap under vDNN
	}{{"inception-v4,batch=128,workspace=0", 0.18}, {"resnet-32,batch=100,image=224,workspace=0", 0.12}} {
		m, err := graphs.Build(n.spec)
		if err != nil {
			return err
		}
		row := []string{n.spec, ""}
		var serial, step time.Duration
		for _, name := range overlapPolicies {
			run, err := dymemIn12GB(m, name)
			if err != nil {
				return err
			}
			step = run.result.Step
			if serial == 0 {
				serial = run.result.Compute + run.result.OutBusy + run.result.InBusy
				row[1] = fmt.Sprintf("%.2f", serial.Seconds())
				less := 1 - step.Seconds()/serial.Seconds()
				e.add("dymem: overlap under vDNN that copies for all layers, "+m.Graph.Name, percent(less), percent(n.published), less >= n.published)
			}
			row = append(row, fmt.Sprintf("%.2f", step.Seconds()), fmt.Sprintf("%.0f %%", 100*(1-step.Seconds()/serial.Seconds())))
		}
		best = max(best, 1-step.Seconds()/serial.Seconds())
		table.Add(row...)
	}
	e.add("dymem: time against copies and layers in turn", percent(-best)+" at best", "-46 % at best", best >= 0.46)
	return table.Write(os.Stdout)
}
