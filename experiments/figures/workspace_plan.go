package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"time"

	"gm/internal/models/graphs"
	"gm/internal/report"
	"gm/internal/swap"
	"gm/internal/swap/link"
	"gm/internal/swap/policy"
	"gm/internal/swap/scheduling"
	"gm/internal/swap/simulate"
	"gm/internal/swap/workspace"
)

// plannedNets are networks whose workspaces are chosen together with a schedule, in parts of the memory that they take without either.
var (
	plannedNets  = []string{stressed, "resnet-50,batch=100", inceptionNet}
	plannedParts = []float64{1, 0.8, 0.6}
)

// workspacePlans compares steps on an H200 by the default policy: with no workspaces, with those that fit into what that schedule leaves, and
// with a schedule that makes room for them, as gmswap plan --options has it.
func workspacePlans(e *experiment, algorithms *graphs.Algorithms) error {
	table := report.Table{Titles: []string{"step on an H200, fp32, ms", "memory, MiB", "no workspace", "filled", "chosen together", "all memory"}}
	slower := 0
	for _, spec := range plannedNets {
		m, err := graphs.Build(spec + ",device=h200,workspace=0")
		if err != nil {
			return err
		}
		if err := m.Offer(algorithms, paperArithmetic); err != nil {
			return fmt.Errorf("%s: %w", spec, err)
		}
		peak := slices.Max(m.Graph.Plain())
		fastest := workspace.Within(m.Graph, math.MaxInt64).Apply(m.Graph).Compute()
		for _, part := range plannedParts {
			p, err := planWorkspaces(m.Graph, int64(part*float64(peak)))
			if err != nil {
				return fmt.Errorf("%s: %w", spec, err)
			}
			if p.together > p.filled {
				slower++
			}
			table.Add(spec, mebibytes(p.device), stepText(p.bare), stepText(p.filled), stepText(p.together), stepText(fastest))
		}
	}
	e.add("workspaces: steps slower with a schedule that makes room than without", fmt.Sprint(slower), "0", slower == 0)
	return table.Write(os.Stdout)
}

// workspacePlan is a network in so much memory. Times are 0 where there is no schedule.
type workspacePlan struct {
	device                 int64
	bare, filled, together time.Duration
}

func stepText(step time.Duration) string {
	if step == 0 {
		return "oom"
	}
	return fmt.Sprintf("%.1f", step.Seconds()*1000)
}

func planWorkspaces(g *swap.Graph, device int64) (*workspacePlan, error) {
	auto, err := policy.Lookup("auto")
	if err != nil {
		return nil, err
	}
	limits := scheduling.Limits{Device: device, Host: 1 << 40, Link: link.Default()}
	plan := &workspacePlan{device: device}
	bare, err := scheduling.Make(g, auto, limits)
	if _, short := errors.AsType[*policy.ShortError](err); short {
		return plan, nil
	}
	if err != nil {
		return nil, err
	}
	free, err := workspace.Free(g, bare.Actions, device)
	if err != nil {
		return nil, err
	}
	filled, err := simulate.Run(workspace.Fastest(g, free).Apply(g), bare.Actions, link.Default(), nil)
	if err != nil {
		return nil, err
	}
	together, err := scheduling.MakeChoosing(g, auto, limits)
	if err != nil {
		return nil, err
	}
	plan.bare, plan.filled, plan.together = bare.Moved.Step, filled.Step, together.Moved.Step
	return plan, nil
}
