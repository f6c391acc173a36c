package tags

// rule assigns a tag to allocations.
type rule struct {
	tag, name string
	basis     basis
	holds     func(f *facts) bool
}

// basis is what a rule follows from.
type basis uint8

const (
	byPasses basis = iota // the passes of an iteration
	byStack               // the allocation's own stack
	byOrder               // the order, sizes and lifetimes of allocations alone
)

const (
	// RuleRecorded is the rule of a tag that the trace has.
	RuleRecorded = "the trace says so"
	ruleNone     = "no rule holds"
)

// short is the most allocations during the lifetime of a temporary, without known iterations.
const short = 64

// rules are the rules in order: the first one that holds assigns the tag of an allocation.
var rules = []rule{
	{Optimizer, "made by the optimizer's code, kept", byStack, func(f *facts) bool { return f.origin == update && (f.kept() || !f.passes && !f.freed) }},
	{Parameters, "older than the recording, there in all iterations", byOrder, func(f *facts) bool { return f.older == asParameter }},
	{Optimizer, "older than the recording, of a gradient's size as the parameter", byOrder, func(f *facts) bool { return f.older == asState }},
	{Unknown, "older than the recording", byPasses, func(f *facts) bool { return f.preexisting && f.origin == unsaid }},
	{Parameters, "made before the first iteration, there in all", byPasses, func(f *facts) bool { return f.born == building && f.throughout }},
	{Temporaries, "made and freed before the first iteration", byPasses, func(f *facts) bool { return f.born == building && f.same }},
	{Optimizer, "made in the optimizer's step, kept", byPasses, func(f *facts) bool { return f.born == update && f.kept() }},
	{Temporaries, "made in the optimizer's step, soon freed", byPasses, func(f *facts) bool { return f.born == update && f.freed }},
	{Temporaries, "made and freed in the forward pass", byPasses, func(f *facts) bool { return f.born == forward && f.same }},
	{Activations, "made again in the backward pass, as its stack says", byStack, func(f *facts) bool { return f.origin == recompute && f.freed }},
	{Temporaries, "made and freed in the backward pass", byPasses, func(f *facts) bool { return f.born == backward && f.same }},
	{Gradients, "made in the backward pass, of a parameter's size, kept", byPasses, func(f *facts) bool { return f.born == backward && f.gradient }},
	{Held, "made in a pass, kept, in later iterations too", byPasses, func(f *facts) bool { return f.pass() && (f.repeated || f.kept() && !f.early) }},
	{Workspaces, "made in a pass of the first two iterations, kept", byPasses, func(f *facts) bool { return f.pass() && f.kept() && f.early }},
	{Gradients, "made in the backward pass, there in the optimizer's step", byPasses, func(f *facts) bool { return f.born == backward && f.updates > 0 }},
	{Gradients, "of a parameter's size, there in the optimizer's step", byPasses, func(f *facts) bool { return f.born == forward && f.sized && f.updates == 1 }},
	{Activations, "made in the forward pass, outlives it", byPasses, func(f *facts) bool { return f.born == forward }},
	{Parameters, "made by code that builds modules, never freed", byStack, func(f *facts) bool { return f.origin == building && !f.freed }},
	{Parameters, "among the first allocations, never freed", byOrder, func(f *facts) bool { return f.first && !f.freed }},
	{Temporaries, "freed before 64 others were made", byOrder, func(f *facts) bool { return f.freed && f.distance < short && !f.passes }},
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

// certainty returns how sure the tag of a rule is. told: the recording names steps of training.
func (r *rule) certainty(told bool) Certainty {
	switch {
	case r.tag == Unknown:
		return NoTag
	case r.basis == byStack, r.basis == byPasses && told:
		return Inferred
	default:
		return Guessed
	}
}
