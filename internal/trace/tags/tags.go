// Package tags derives what the allocations of a training job are for: parameters, gradients, the optimizer's state, activations,
// temporaries. Tags in the trace take precedence. Otherwise rules derive the tag from the passes in which an allocation is made and
// freed, and from the code that made it, if stacks were recorded. The rule is reported with the tag, and how certain it is: a tag is a
// guess where the recording names no step of training, by a stack or by a mark, or where the rule uses neither.
//
// Iterations end with the steps of an optimizer, if these are marked; otherwise package iterations finds them. An iteration consists of
// a forward pass, a backward pass and the optimizer's update. For example, a block that is allocated in the backward pass and live in the
// update is a gradient, and one that is allocated in the forward pass and live in the backward pass is an activation. rules.go lists all
// rules.
package tags

import (
	"maps"
	"slices"
	"strings"

	"gm/formats/trace"
)

// The derived tags.
const (
	Parameters  = "parameters" // including buffers of modules
	Gradients   = "gradients"
	Optimizer   = "optimizer state"
	Activations = "activations" // including results of a pass for the program, such as the loss
	Temporaries = "temporaries"
	Workspaces  = "workspaces" // memory that libraries allocate at first use and keep: cuBLAS workspaces, buckets of gradients
	Held        = "held"       // memory of later iterations that the program keeps: lists of losses, leaks
	Unknown     = "unknown"
)

// Label is what an allocation is for, and the rule that says so.
type Label struct {
	Tag       string
	Rule      string
	Certainty Certainty
}

// Certainty is how sure a tag is.
type Certainty string

// The certainties.
const (
	Recorded Certainty = "recorded"     // the trace says so
	Inferred Certainty = trace.Inferred // from the code that made the allocation, or from passes that stacks or an optimizer's marks name
	Guessed  Certainty = trace.Guess    // from the order, the sizes and the lifetimes of allocations alone
	NoTag    Certainty = "none"         // of unknown allocations
)

// Name returns the tag, and says if it is a guess.
func (l Label) Name() string {
	if l.Certainty == Guessed {
		return l.Tag + guess
	}
	return l.Tag
}

const guess = " (guess)"

// TagOf returns the tag of a name, as [Label.Name] made it.
func TagOf(name string) string { return strings.TrimSuffix(name, guess) }

// Tags holds the labels of the allocations at the framework's level of a trace.
type Tags struct {
	labels []Label
	byID   []uint16 // number of the label, by id
}

// maxRecorded is the most tags of a trace that are used.
const maxRecorded = 10000

// Derive reads the trace to its end. It examines the first [iterations.MaxRequests] allocations of each device, at most
// [iterations.MaxInAll] in total; no rule holds for the others. It needs about 150 bytes of memory for each, and the result has 2 bytes
// for each id.
func Derive(r *trace.Reader) (*Tags, error) {
	c := newCollector(r.Strings())
	err := trace.Each(r, func(row int64, e *trace.Event) error {
		c.add(e, row)
		return nil
	})
	if err != nil {
		return nil, err
	}
	t := &Tags{labels: append(c.recorded, Label{Unknown, ruleNone, NoTag}), byID: make([]uint16, c.lastID+1)}
	none := len(t.labels) - 1
	for i := range t.byID {
		t.byID[i] = uint16(none)
	}
	first := len(t.labels)
	for i := range rules {
		r := &rules[i]
		t.labels = append(t.labels, Label{r.tag, r.name, r.certainty(false)}, Label{r.tag, r.name, r.certainty(true)})
	}
	for _, ordinal := range c.order {
		d := c.devices[ordinal]
		told := 0
		if len(c.marks) > 0 || d.named() {
			told = 1
		}
		for i, f := range allFacts(d, findPasses(d, c.marks)) {
			b := &d.blocks[i]
			if b.recorded > 0 {
				t.byID[b.id] = b.recorded - 1
			} else if n := ruleOf(&f); n >= 0 {
				t.byID[b.id] = uint16(first + 2*n + told)
			}
		}
	}
	return t, nil
}

// Of returns the label of the allocation with an id, and the label of unknown allocations for ids that are not the framework's.
func (t *Tags) Of(id int64) Label { return t.labels[t.Index(id)] }

// Index returns the number of the label of an allocation, from 0. Equal labels have equal numbers.
func (t *Tags) Index(id int64) int {
	if id < 0 || id >= int64(len(t.byID)) {
		return int(t.byID[0])
	}
	return int(t.byID[id])
}

// Label returns the label with a number.
func (t *Tags) Label(index int) Label { return t.labels[index] }

// Derived returns the derived tags without unknown, the longest-lived first.
func Derived() []string {
	return []string{Parameters, Optimizer, Gradients, Workspaces, Held, Activations, Temporaries}
}

// Named returns the name of the tag that the trace has for an allocation, by its columns tag and derived; "" if it has none.
func Named(tag, derived string) string {
	l, _ := labelOf(tag, derived)
	return l.Name()
}

// labelOf returns the label that the trace has for an allocation, and whether it has one.
func labelOf(tag, derived string) (Label, bool) {
	if d, ok := trace.ParseDerived(derived); ok {
		return Label{d.Tag, d.Rule, Certainty(d.Certainty)}, true
	}
	if _, older := trace.ParsePreexisting(tag); older || tag == "" {
		return Label{}, false
	}
	return Label{tag, RuleRecorded, Recorded}, true
}

// Colors returns the number of the colour of each tag in pictures and pages: the derived ones have the same in all traces, the other tags of the
// trace follow in the order in which these appear.
func (t *Tags) Colors() map[string]int {
	numbers := map[string]int{}
	for _, tag := range Derived() {
		numbers[tag] = len(numbers)
	}
	for _, l := range t.labels {
		if _, known := numbers[l.Tag]; !known && l.Tag != Unknown {
			numbers[l.Tag] = len(numbers)
		}
	}
	return numbers
}

// Names returns the names of the allocations' tags: first the derived ones, then those of the trace itself, then unknown, which is always
// there. A tag that is a guess for some allocations has a name of its own for these.
func (t *Tags) Names() []string {
	seen := make([]bool, len(t.labels))
	for _, index := range t.byID {
		seen[index] = true
	}
	order := Derived()
	used := map[string]map[string]bool{} // names by tag
	for index, l := range t.labels {
		if !seen[index] || l.Tag == Unknown {
			continue
		}
		if used[l.Tag] == nil {
			used[l.Tag] = map[string]bool{}
			if !slices.Contains(order, l.Tag) {
				order = append(order, l.Tag)
			}
		}
		used[l.Tag][l.Name()] = true
	}
	var all []string
	for _, tag := range order {
		all = append(all, slices.Sorted(maps.Keys(used[tag]))...)
	}
	return append(all, Unknown)
}
