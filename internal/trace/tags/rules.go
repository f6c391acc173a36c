package tags

// rule assigns a tag to allocations.
type rule struct {
	tag, name string
	holds     func(f *facts) bool
}

const (
	ruleRecorded = "the trace says so"
	ruleNone     = "no rule holds"
)

// short is the most allocations during the lifetime of a temporary, without known iterations.
const short = 64

// rules are the rules in order: the first one that holds assigns the tag of an allocation.
var rules = []rule{
	{Optimizer, "made by the optimizer's code, kept", func(f *facts) bool { return f.origin == update && (f.kept() || !f.passes && !f.freed) }},
	{Parameters, "older than the recording, there in all iterations", func(f *facts) bool { return f.older == asParameter }},
	{Optimizer, "older than the recording, of a gradient's size as the parameter", func(f *facts) bool { return f.older == asState }},
	{Unknown, "older than the recording", func(f *facts) bool { return f.preexisting && f.origin == unsaid }},
	{Parameters, "made before the first iteration, there in all", func(f *facts) bool { return f.born == building && f.throughout }},
	{Temporaries, "made and freed before the first iteration", func(f *facts) bool { return f.born == building && f.same }},
	{Optimizer, "made in the optimizer's step, kept", func(f *facts) bool { return f.born == update && f.kept() }},
	{Temporaries, "made in the optimizer's step, soon freed", func(f *facts) bool { return f.born == update && f.freed }},
	{Temporaries, "made and freed in the forward pass", func(f *facts) bool { return f.born == forward && f.same }},
	{Activations, "made again in the backward pass, as its stack says", func(f *facts) bool { return f.origin == recompute && f.freed }},
	{Temporaries, "made and freed in the backward pass", func(f *facts) bool { return f.born == backward && f.same }},
	{Gradients, "made in the backward pass, of a parameter's size, kept", func(f *facts) bool { return f.born == backward && f.gradient }},
	{Held, "made in a pass, kept, in later iterations too", func(f *facts) bool { return f.pass() && (f.repeated || f.kept() && !f.early) }},
	{Workspaces, "made in a pass of the first two iterations, kept", func(f *facts) bool { return f.pass() && f.kept() && f.early }},
	{Gradients, "made in the backward pass, there in the optimizer's step", func(f *facts) bool { return f.born == backward && f.updates > 0 }},
	{Gradients, "of a parameter's size, there in the optimizer's step", func(f *facts) bool { return f.born == forward && f.sized && f.updates == 1 }},
	{Activations, "made in the forward pass, outlives it", func(f *facts) bool { return f.born == forward }},
	{Parameters, "made by code that builds modules, never freed", func(f *facts) bool { return f.origin == building && !f.freed }},
	{Parameters, "among the first allocations, never freed", func(f *facts) bool { return f.first && !f.freed }},
	{Temporaries, "freed before 64 others were made", func(f *facts) bool { return f.freed && f.distance < short && !f.passes }},
}

// ruleOf returns the index of the rule that holds for an allocation, -1 for none.
func ruleOf(f *facts) int {
	for i := range rules {
		if rules[i].holds(f) {
			return i
		}
	}
	return -1
}
