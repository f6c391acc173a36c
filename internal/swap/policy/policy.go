// Package policy makes schedules: what of a training step is copied to the host, what is recomputed, and when, so that the step fits in a given
// amount of memory. A policy makes its trips and actions by package draft; the policies that are only here for comparison are in package papers.
//
//	policy.go    the policies by name, and what a schedule has to pass
//	auto.go      auto: the best of all others
//	quick.go     quick: the best of a family of schedules; family.go and maker.go make the family
//	prompt.go    prompt: what quick makes for one amount of memory
//	joint.go     joint: for each tensor keep, copy or recompute. candidate.go, choose.go and improve.go choose; levels.go counts memory
//	realize.go   trips and actions for what was chosen
//	bound.go     a lower bound of the time of a step
//	remat.go     recomputation alone, by package remat
//	floor.go     DeepSpeed's, memo.go MEMO's, dymem.go Dymem's, belady.go Belady's
//	state.go     what all of them work on
package policy

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"gm/internal/swap"
	"gm/internal/swap/check"
	"gm/internal/swap/draft"
	"gm/internal/swap/papers"
)

// Policy makes schedules of steps.
type Policy struct {
	Name  string
	About string // one line
	plan  planner
}

// planner makes the actions of a schedule, valid until the next one is made of the same problem. The error is a *ShortError.
type planner func(*problem) ([]swap.Action, error)

// ShortError is the error of a policy that has no schedule within the limits.
type ShortError = draft.ShortError

// Policies lists the policies, the default first.
func Policies() []Policy {
	return []Policy{
		{autoName, "the fastest schedule of all the others", planAuto},
		{quickName, "the fastest of what joint, floor, memo, belady, dymem and a short search of remat make for some amounts of memory around and below the limit; more memory is never slower", planQuick},
		{promptName, "what quick makes for this very limit alone, in a small part of its time", planPrompt},
		{"joint", "for each tensor the cheapest of keeping, copying and recomputing, by simulation", planJoint},
		{"floor", "copy all, bring back the largest while they fit, copy the rest back in time (DeepSpeed)", planFloor},
		{"memo", "copy inputs and attention of each layer and a part of the rows of others, recompute the rest (MEMO); memo=0.5 names the part", planMemo},
		{"dymem", "copy what convolutions, pooling, activations and norms read; wait only where memory is short (Dymem)", planDymem},
		{rematName, "recompute, and copy nothing: what is held between its uses, and from when, by search", planRemat},
		{"checkpoint", "keep the input of each layer, recompute the rest of it (torch.utils.checkpoint)", paper(papers.Checkpoint)},
		{"superneurons", "copy what convolutions make, least recently used first; recompute cheap layers (SuperNeurons)", paper(papers.SuperNeurons)},
		{"vdnn-all", "copy the input of each layer, with a barrier behind each (vDNN)", paper(papers.VDNNAll)},
		{"vdnn-conv", "copy the input of each convolution, with a barrier behind each (vDNN)", paper(papers.VDNNConv)},
		{"vdnn-dyn", "the first of none, vdnn-conv and vdnn-all that fits (vDNN's dynamic policy)", planVDNNDynamic},
		{"dtr", "recompute, and copy nothing: the cheapest for their bytes and age go first, on PyTorch's allocator (DTR)", paper(papers.DTR)},
		{"coop", "recompute, and copy nothing: the cheapest that lie next to each other go first (Coop)", paper(papers.Coop)},
		{"belady", "where memory is short: what is needed furthest in the future goes first", planBelady},
		{"latency", "where memory is short: the greatest bytes x time to the next use go first (Ravenstore)", paper(papers.Latency)},
		{"lru", "where memory is short: the least recently used goes first", paper(papers.LRU)},
		{"fifo", "where memory is short: what came first goes first", paper(papers.FIFO)},
		{"all", "copy all that the backward pass needs", paper(papers.All)},
		{"none", "move nothing", planNone},
	}
}

// Lookup returns the policy of a name. The name memo=0.5 is that of memo with this part of the rows copied.
func Lookup(name string) (Policy, error) {
	if text, ok := strings.CutPrefix(name, "memo="); ok {
		part, err := strconv.ParseFloat(text, 64)
		if err != nil || !(part >= 0 && part <= 1) {
			return Policy{}, fmt.Errorf("policy %s: %q is not a fraction of the rows, from 0 to 1", name, text)
		}
		return Policy{Name: name, plan: planMemoWith(part)}, nil
	}
	var names []string
	for _, p := range Policies() {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return Policy{}, fmt.Errorf("unknown policy %q, expected one of %s", name, strings.Join(names, ", "))
}

// Plan returns a schedule of a step of g, which has to be valid, that keeps to the limits. Where there is none the error is a *[ShortError].
func (p Policy) Plan(g *swap.Graph, limits swap.Limits) (s *swap.Schedule, err error) {
	p.PlanEach(g, limits, []int64{limits.Device}, func(_ int, made *swap.Schedule, failed error) { s, err = made, failed })
	return s, err
}

// PlanEach makes schedules as [Policy.Plan] does, for some amounts of device memory instead of that of the limits, in ascending order. It
// calls visit with each.
func (p Policy) PlanEach(g *swap.Graph, limits swap.Limits, devices []int64, visit func(i int, s *swap.Schedule, err error)) {
	pr := newProblem(g, limits)
	for i, device := range devices {
		pr.Limits.Device = device
		actions, err := p.plan(pr)
		if err == nil {
			err = pr.accept(actions)
		}
		if err != nil {
			visit(i, nil, p.failed(err))
			continue
		}
		visit(i, &swap.Schedule{Policy: p.Name, Actions: slices.Clone(actions)}, nil)
	}
}

// Shares says that PlanEach takes little longer than Plan does for the last amount of memory.
func (p Policy) Shares() bool { return p.Name == quickName }

const (
	autoName   = "auto"
	quickName  = "quick"
	promptName = "prompt"
	rematName  = "remat"
)

// failed returns an error of a plan as that of the policy.
func (p Policy) failed(err error) error {
	if short, ok := errors.AsType[*draft.ShortError](err); ok {
		told := *short // the policy may return it again
		told.Policy = p.Name
		return &told
	}
	return fmt.Errorf("policy %s: %w", p.Name, err)
}

// result is the time, traffic and peak of a schedule.
type result struct {
	step  time.Duration
	moved int64 // bytes copied to the host
	peak  int64 // bytes in use on the device, and the operator at which they are
	op    int32
}

// compare puts the better one of two schedules first: the faster, or of equally fast ones that which copies fewer bytes.
func (r *result) compare(o *result) int {
	return cmp.Or(cmp.Compare(r.step, o.step), cmp.Compare(r.moved, o.moved))
}

func (r *result) better(than *result) bool { return r.compare(than) < 0 }

// simulate returns the result of a schedule, and an error for one that breaks the rules.
func (p *problem) simulate(actions []swap.Action) (result, error) {
	r, err := p.machine.Run(actions, nil)
	if err != nil {
		return result{}, fmt.Errorf("its schedule breaks the rules: %w", err)
	}
	return result{r.Step, r.Out, r.Peak, r.PeakOp}, nil
}

// admit does so too, and returns a *ShortError for one that takes more of the host than there is.
func (p *problem) admit(actions []swap.Action) (result, error) {
	r, err := p.simulate(actions)
	if err != nil {
		return result{}, err
	}
	for _, slot := range check.Slots(p.Graph, actions) {
		if end := slot.Offset + slot.Bytes; end > p.Limits.Host {
			return result{}, &draft.ShortError{Bytes: end - p.Limits.Host, Op: actions[slot.Action].At, Host: true}
		}
	}
	return r, nil
}

// accept returns an error for a schedule that breaks the rules, and a *ShortError for one that does not keep to the limits.
func (p *problem) accept(actions []swap.Action) error {
	_, err := p.keeps(actions)
	return err
}

// keeps returns the result of a schedule that keeps to the limits. The error is as that of accept.
func (p *problem) keeps(actions []swap.Action) (result, error) {
	r, err := p.admit(actions)
	if err == nil && r.peak > p.Limits.Device {
		err = &draft.ShortError{Bytes: r.peak - p.Limits.Device, Op: r.op}
	}
	return r, err
}

func planNone(*problem) ([]swap.Action, error) { return nil, nil }

// planVDNNDynamic is vDNN's dynamic policy (Rhu et al., MICRO 2016, section 3.3): it tries steps that move nothing, then the inputs of
// convolutions, then those of all layers, and takes the first that fits. vDNN also tries each with the fastest algorithms of convolutions, and with
// slower ones; here these are the graph's.
func planVDNNDynamic(p *problem) (actions []swap.Action, err error) {
	for _, plan := range []planner{planNone, paper(papers.VDNNConv), paper(papers.VDNNAll)} {
		if actions, err = plan(p); err == nil {
			err = p.accept(actions)
		}
		if _, short := errors.AsType[*draft.ShortError](err); !short {
			break
		}
	}
	return actions, err
}

// paper is a policy of a paper as a planner.
func paper(plan func(*draft.Problem) ([]swap.Action, error)) planner {
	return func(p *problem) ([]swap.Action, error) { return plan(p.Problem) }
}
