// Package tags tells what the allocations of a training job are for: parameters, gradients, the optimizer's state, activations,
// temporaries. Where a trace says so itself, that is taken. Else it follows from lifetimes: from when an allocation is made and freed,
// counted in the passes of the job's iterations, and from the code that made it where stacks were recorded. The rule that named an
// allocation is told with its tag.
//
// Iterations are those between the steps of an optimizer where these are marked, or else those of package iterations. An iteration is a
// forward pass, a backward pass and the optimizer's update. What was made in the backward pass and is there in the update is a gradient;
// what was made in the forward pass and is there in the backward pass is an activation, and so on: see the list of rules.
package tags

import (
	"slices"

	"gm/formats/trace"
)

// The tags that are derived.
const (
	Parameters  = "parameters" // buffers of modules as well
	Gradients   = "gradients"
	Optimizer   = "optimizer state"
	Activations = "activations" // and what a pass hands on to the program, such as the loss
	Temporaries = "temporaries"
	Workspaces  = "workspaces" // what libraries take at their first use, and keep: of cuBLAS, buckets of gradients
	Held        = "held"       // what the program keeps of later iterations: lists of losses, leaks
	Unknown     = "unknown"
)

// Label is what an allocation is for, and why it is taken to be for that.
type Label struct {
	Tag  string
	Rule string
}

// Tags are the labels of the allocations of a trace's framework level.
type Tags struct {
	labels []Label
	byID   []uint16 // index of the label
}

// maxRecorded is how many tags of a trace's own are taken.
const maxRecorded = 10000

// Derive reads the trace to its end. It holds some 150 bytes for each allocation meanwhile, of which it looks at the first
// [iterations.MaxRequests] of each device, [iterations.MaxInAll] of all, and keeps 2 bytes for each id. No rule holds for the others.
func Derive(r *trace.Reader) (*Tags, error) {
	c := newCollector(r.Strings())
	err := trace.Each(r, func(row int64, e *trace.Event) error {
		c.add(e, row)
		return nil
	})
	if err != nil {
		return nil, err
	}
	t := &Tags{labels: append(c.recorded, Label{Unknown, ruleNone}), byID: make([]uint16, c.lastID+1)}
	none := len(t.labels) - 1
	for i := range t.byID {
		t.byID[i] = uint16(none)
	}
	first := len(t.labels)
	for _, r := range rules {
		t.labels = append(t.labels, Label{r.tag, r.name})
	}
	for _, ordinal := range c.order {
		d := c.devices[ordinal]
		for i, f := range allFacts(d, findPasses(d, c.marks)) {
			b := &d.blocks[i]
			if b.recorded > 0 {
				t.byID[b.id] = b.recorded - 1
			} else if n := ruleOf(&f); n >= 0 {
				t.byID[b.id] = uint16(first + n)
			}
		}
	}
	return t, nil
}

// Of returns the label of the allocation of an id, the one of unknown allocations for ids that are none of the framework's.
func (t *Tags) Of(id int64) Label { return t.labels[t.Index(id)] }

// Index returns the number of the label of an allocation, from 0: equal labels have equal numbers.
func (t *Tags) Index(id int64) int {
	if id < 0 || id >= int64(len(t.byID)) {
		return int(t.byID[0])
	}
	return int(t.byID[id])
}

// Label returns the label of a number.
func (t *Tags) Label(index int) Label { return t.labels[index] }

// Derived returns the tags that are derived, but for unknown: those that live longest first.
func Derived() []string {
	return []string{Parameters, Optimizer, Gradients, Workspaces, Held, Activations, Temporaries}
}

// Tags returns the tags that allocations have: those that are derived, behind them those that the trace has itself, and unknown, which
// is always there.
func (t *Tags) Tags() []string {
	used := map[string]bool{}
	seen := make([]bool, len(t.labels))
	for _, index := range t.byID {
		seen[index] = true
	}
	for index, l := range t.labels {
		used[l.Tag] = used[l.Tag] || seen[index]
	}
	derived := Derived()
	all := slices.Clone(derived)
	for _, l := range t.labels {
		if l.Rule == ruleRecorded && l.Tag != Unknown && !slices.Contains(derived, l.Tag) {
			all = append(all, l.Tag)
		}
	}
	return append(slices.DeleteFunc(all, func(tag string) bool { return !used[tag] }), Unknown)
}
