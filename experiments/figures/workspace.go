package main

import (
	"fmt"
	"math"
	"os"
	"time"

	"gm/internal/models/graphs"
	"gm/internal/report"
	"gm/internal/swap/workspace"
)

// algorithmsFile is what experiments/workspaces/cudnn.py wrote on an H200.
const algorithmsFile = "experiments/workspaces/results/cudnn-h200.csv"

// dymemStepBytes is what Dymem adds to a workspace at a time (section 4.2).
const dymemStepBytes = 1 << 20

// stressed is the network that the paper trains "layer by layer", because it does not fit the card.
const stressed = "vgg-16,batch=256"

// workspaceNets are those of figure 12(b).
var workspaceNets = []string{
	"alexnet,batch=256", "vgg-16,batch=64", "vgg-16,batch=128", stressed, "resnet-50,batch=100", "resnet-101,batch=100", "resnet-152,batch=100",
	inceptionNet,
}

// workspacePolicies are those whose schedules leave memory for workspaces. vDNN takes Dymem's way to choose them.
var workspacePolicies = []string{"vdnn-all", "vdnn-conv", "dymem"}

// workspaceWays are the columns of the figure. Layer by layer nothing is on the device but what a layer reads and writes: the paper runs the
// stressed network so.
var workspaceWays = append([]string{"no workspace", "layer by layer"}, workspacePolicies...)

// The places of some in that.
const (
	bareWay  = 0
	layerWay = 1
	vdnnWay  = 2
	dymemWay = 4
)

// measureWorkspaces is figure 12(b): the throughput of convolutions in 12 GB, of that with the fastest algorithms. Times of algorithms are those of
// an H200, workspaces those that they take there; schedules are for the paper's card.
func measureWorkspaces(e *experiment) error {
	file, err := os.Open(algorithmsFile)
	if err != nil {
		return err
	}
	defer file.Close()
	algorithms, err := graphs.ReadAlgorithms(file)
	if err != nil {
		return fmt.Errorf("%s: %w", algorithmsFile, err)
	}
	fmt.Printf("Algorithms: %s\n\n", algorithms.Source)
	for _, arithmetic := range []string{paperArithmetic, "tf32"} {
		if err := workspacesOf(e, algorithms, arithmetic); err != nil {
			return err
		}
	}
	return workspacePlans(e, algorithms)
}

// shares are parts of the throughput of the fastest algorithms, network by network but for the stressed one.
type shares struct{ of []float64 }

func (s *shares) add(spec string, share float64) {
	if spec != stressed && !math.IsNaN(share) {
		s.of = append(s.of, share)
	}
}

func (s *shares) mean() float64 {
	sum := 0.0
	for _, x := range s.of {
		sum += x
	}
	return sum / float64(len(s.of))
}

// paperArithmetic is that of the paper: its card has no tensor cores.
const paperArithmetic = "fp32"

// workspacesOf is the figure in one kind of arithmetic.
func workspacesOf(e *experiment, algorithms *graphs.Algorithms, arithmetic string) error {
	table := report.Table{Titles: []string{"figure 12(b), " + arithmetic + ": throughput of convolutions", "fastest, ms", "largest workspace, MiB"}}
	table.Titles = append(table.Titles, workspaceWays...)
	means := make([]shares, len(workspaceWays))
	for _, spec := range workspaceNets {
		row, err := workspaceOf(spec, algorithms, arithmetic)
		if err != nil {
			return fmt.Errorf("%s: %w", spec, err)
		}
		cells := []string{spec, fmt.Sprintf("%.1f", row.fastest.Seconds()*1000), mebibytes(row.largest)}
		for i, share := range row.shares {
			means[i].add(spec, share)
			cells = append(cells, part(share))
		}
		table.Add(cells...)
		if spec == stressed && arithmetic == paperArithmetic {
			if err := e.addStressed(row, algorithms); err != nil {
				return err
			}
		}
	}
	if err := table.Write(os.Stdout); err != nil {
		return err
	}
	fmt.Println()
	if arithmetic == paperArithmetic {
		bare := means[bareWay].mean() // the paper's loss is as large as that or larger
		e.add("workspaces: throughput of convolutions, the others without workspaces, in the mean", part(bare), "40 %", bare <= 0.40)
		e.addShare("the others under vDNN, in the mean", means[vdnnWay].mean(), 0.97)
		e.addShare("the others under Dymem, in the mean", means[dymemWay].mean(), 0.95)
	}
	return nil
}

// addStressed adds the figures of the stressed network. What Dymem's schedule leaves depends on the pace of the layers.
func (e *experiment) addStressed(row *workspaceRow, algorithms *graphs.Algorithms) error {
	e.addShare("VGG-16, 256 images, layer by layer", row.shares[layerWay], 0.84)
	e.addShare("VGG-16, 256 images, under Dymem", row.shares[dymemWay], 0.72)
	row, err := workspaceOf(stressed+",device=h200", algorithms, paperArithmetic)
	if err != nil {
		return err
	}
	e.add("workspaces: the same, with all layers at an H200's pace", part(row.shares[dymemWay]), "", true)
	return nil
}

// addShare adds a part of the throughput of the fastest algorithms beside the paper's, which it has to reach.
func (e *experiment) addShare(name string, share, published float64) {
	e.add("workspaces: throughput of convolutions, "+name, part(share), part(published), share >= published)
}

func part(share float64) string {
	if math.IsNaN(share) {
		return "oom"
	}
	return fmt.Sprintf("%.0f %%", 100*share)
}

// workspaceRow is a network in the figure.
type workspaceRow struct {
	fastest time.Duration // of all convolutions
	largest int64         // workspace that those take
	shares  []float64     // by way; not a number where there is no schedule
}

func workspaceOf(spec string, algorithms *graphs.Algorithms, arithmetic string) (*workspaceRow, error) {
	m, err := graphs.Build(spec + ",workspace=0")
	if err != nil {
		return nil, err
	}
	runs := make([]*dymemRun, len(workspacePolicies))
	for i, name := range workspacePolicies {
		if runs[i], err = dymemStep(m, name, dymemDevice); err != nil {
			return nil, err
		}
	}
	if err := m.Offer(algorithms, arithmetic); err != nil {
		return nil, err
	}
	g := m.Graph
	best := workspace.Within(g, math.MaxInt64)
	row := &workspaceRow{fastest: convolving(m, best)}
	for _, c := range m.Convolutions {
		row.largest = max(row.largest, best.Bytes(g, int(c.Op)))
	}
	share := func(free []int64) {
		c := workspace.Fastest(g, workspace.InSteps(free, dymemStepBytes))
		row.shares = append(row.shares, row.fastest.Seconds()/convolving(m, c).Seconds())
	}
	share(make([]int64, len(g.Ops)))
	alone := g.Alone()
	for i := range alone {
		alone[i] = dymemDevice - alone[i]
	}
	share(alone)
	for _, run := range runs {
		if run == nil {
			row.shares = append(row.shares, math.NaN())
			continue
		}
		free, err := workspace.Free(g, run.actions, dymemDevice)
		if err != nil {
			return nil, err
		}
		share(free)
	}
	return row, nil
}

// convolving returns the time of all convolutions in a step.
func convolving(m *graphs.Model, c workspace.Choice) time.Duration {
	sum := time.Duration(0)
	for _, x := range m.Convolutions {
		sum += c.Duration(m.Graph, int(x.Op))
	}
	return sum
}
