package main

import (
	"fmt"
	"os"

	"gm/internal/models/graphs"
	"gm/internal/report"
)

// The networks of which the paper's text gives peaks. ResNet-32 is that of figure 15, without batch normalization; the paper's sizes are
// those of images of 224 x 224.
const (
	inceptionNet = "inception-v4,batch=128"
	residualNet  = "resnet-32,batch=100,image=224,norm=0"
)

// dymemNets are those of figures 12(a) and 15.
var dymemNets = []string{
	"alexnet,batch=256", "vgg-16,batch=64", inceptionNet, "resnet-50,batch=100", "resnet-101,batch=100", "resnet-152,batch=100", residualNet,
}

// dymemMemory is figures 12(a) and 15: the least memory of each policy, as the sum of what is in use, and as pools.
func dymemMemory(e *experiment) error {
	table := report.Table{Titles: append([]string{"figures 12(a), 15: least memory, MiB"}, dymemPolicies...)}
	table.Titles = append(table.Titles, "vdnn-dyn, best fit", "dymem, best fit", "dymem, grouped", "dymem, gmplan")
	all := map[string][]*dymemRun{}
	var pools dymemPools
	for _, spec := range dymemNets {
		m, err := graphs.Build(spec)
		if err != nil {
			return err
		}
		row := []string{spec}
		runs := make([]*dymemRun, len(dymemPolicies))
		for i, name := range dymemPolicies {
			if runs[i], err = dymemLeast(m, name); err != nil {
				return fmt.Errorf("%s: %w", spec, err)
			}
			row = append(row, runs[i].peak())
		}
		cells, err := pools.add(spec, runs[vdnnDyn], runs[dymem])
		if err != nil {
			return fmt.Errorf("%s: %w", spec, err)
		}
		table.Add(append(row, cells...)...)
		all[spec] = runs
	}
	e.dymemPeaks(all)
	pools.report(e)
	return table.Write(os.Stdout)
}

// dymemPeaks compares peaks with what the paper's text says of them (sections 5.1 and 5.4). The paper's MB are taken for MiB. A policy that
// does not fit the card cannot meet a figure of the paper, in which all do.
func (e *experiment) dymemPeaks(all map[string][]*dymemRun) {
	peak := func(spec string, policy int) float64 { return float64(all[spec][policy].result.Peak) / (1 << 20) }
	saved := func(name, spec string, from int, target string, published float64) {
		before, after := peak(spec, from), peak(spec, dymem)
		text := fmt.Sprintf("%.0f -> %.0f MiB, %+.0f %%", before, after, 100*(after/before-1))
		e.add("dymem: memory of "+name, text, target, before <= float64(dymemDevice>>20) && 1-after/before >= published)
	}
	saved("Inception-v4, vDNN -> Dymem", inceptionNet, vdnnDyn, "3650 -> 2527 MB, -31 %", 1-2527.0/3650)
	saved("Inception-v4, SuperNeurons -> Dymem", inceptionNet, superNeurons, "-28 %", 0.28)
	saved("ResNet-32, vDNN -> Dymem", residualNet, vdnnDyn, "2500 -> 1854 MB, -26 %", 1-1854.0/2500)
	e.add("dymem: memory of Inception-v4 under Dymem", fmt.Sprintf("%.0f MiB", peak(inceptionNet, dymem)), "2527 MB", peak(inceptionNet, dymem) <= 2527)
	super, dynamic := peak(inceptionNet, superNeurons), peak(inceptionNet, vdnnDyn)
	e.add("dymem: memory of Inception-v4, vDNN -> SuperNeurons", fmt.Sprintf("%.0f -> %.0f MiB", dynamic, super), "less, and it fits",
		super < dynamic && super <= float64(dymemDevice>>20))
	alex := peak(dymemNets[0], dymem) - peak(dymemNets[0], vdnnDyn)
	e.add("dymem: memory of AlexNet under Dymem, above vDNN", fmt.Sprintf("%+.0f MiB", alex), "nearly +250 MB", alex > 0 && alex <= 250)
	least, deep := 0, 0
	for _, spec := range dymemNets[2:] {
		deep++
		if peak(spec, dymem) < peak(spec, vdnnDyn) && peak(spec, dymem) < peak(spec, superNeurons) {
			least++
		}
	}
	e.add("dymem: networks that are not linear, in which Dymem takes the least", fmt.Sprint(least), fmt.Sprint(deep), least == deep)
	growth := peak("resnet-152,batch=100", dymem) / peak("resnet-50,batch=100", dymem)
	e.add("dymem: memory of ResNet-152, of that of ResNet-50", fmt.Sprintf("%.2f", growth), "not linear: below 3.04", growth < 152.0/50)
}

// peak is what a run takes, as the sum of what is in use.
func (r *dymemRun) peak() string {
	if r.result.Peak > dymemDevice {
		return mebibytes(r.result.Peak) + " (oom)"
	}
	return mebibytes(r.result.Peak)
}

func mebibytes(bytes int64) string { return fmt.Sprintf("%.0f", float64(bytes)/(1<<20)) }
