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
	table.Titles = append(table.Titles, "vdnn-all, best fit", "dymem, best fit", "dymem, grouped", "dymem, gmplan")
	lower := 0
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
		cells, err := pools.add(runs[vdnnAll], runs[dymem])
		if err != nil {
			return fmt.Errorf("%s: %w", spec, err)
		}
		table.Add(append(row, cells...)...)
		if runs[vdnnAll] != nil && runs[dymem] != nil {
			lower += e.dymemSaving(spec, runs[vdnnAll].result.Peak, runs[dymem].result.Peak)
		}
	}
	e.add("dymem: networks in which Dymem takes no more than vDNN", fmt.Sprint(lower), fmt.Sprintf("all %d but AlexNet", len(dymemNets)),
		lower >= len(dymemNets)-1)
	pools.report(e)
	if err := dymemAhead(e); err != nil {
		return err
	}
	return table.Write(os.Stdout)
}

// dymemAhead compares AlexNet's memory where there is plenty: Dymem uses it to copy back early.
func dymemAhead(e *experiment) error {
	m, err := graphs.Build(dymemNets[0])
	if err != nil {
		return err
	}
	var peaks []float64
	for _, name := range []string{"vdnn-all", "dymem"} {
		run, err := dymemIn12GB(m, name)
		if err != nil {
			return err
		}
		peaks = append(peaks, float64(run.result.Peak)/(1<<20))
	}
	more := peaks[1] - peaks[0]
	e.add("dymem: memory of AlexNet in 12 GB, above vDNN", fmt.Sprintf("%+.0f MiB", more), "nearly +250 MB", more > 150 && more < 350)
	return nil
}

// dymemSaving compares peaks with those that the paper's text gives (sections 5.1 and 5.4). It returns 1 if Dymem's is no higher.
func (e *experiment) dymemSaving(spec string, vdnn, dymem int64) int {
	before, after := float64(vdnn)/(1<<20), float64(dymem)/(1<<20)
	saving := fmt.Sprintf("%.0f -> %.0f MiB, %+.0f %%", before, after, 100*(after/before-1))
	switch spec {
	case inceptionNet:
		met := before > 0.9*3650 && before < 1.1*3650 && after > 0.9*2527 && after < 1.1*2527
		e.add("dymem: memory of Inception-v4, vDNN -> Dymem", saving, "3650 -> 2527 MB, -31 %", met)
	case residualNet:
		e.add("dymem: memory of ResNet-32, vDNN -> Dymem", saving, "2500 -> 1854 MB, -26 %", after/before > 0.64 && after/before < 0.84)
	}
	if after > before {
		return 0
	}
	return 1
}

// peak is what a run takes, as the sum of what is in use.
func (r *dymemRun) peak() string {
	if r == nil {
		return "oom"
	}
	return mebibytes(r.result.Peak)
}

func mebibytes(bytes int64) string { return fmt.Sprintf("%.0f", float64(bytes)/(1<<20)) }
