// Package swap holds what the parts of gmswap share: a training step as a graph of operators and tensors, a schedule of what is moved to
// the host and back during it, and the limits that a schedule must keep to.
//
// A graph is a list of operators in the order in which the compute stream runs them, forward pass first. A schedule is a list of actions,
// each at an operator: it is carried out by the program's thread right before that operator is launched, and it takes effect in the order of
// the streams. The program never waits for the GPU; the compute stream waits for copies, on the GPU, where an action or an operator says so.
// So memory is freed and taken in the order of the program, and a schedule's peak does not depend on how fast copies are.
//
// This package has the types; what is done with them is below it:
//
//	graph.go, schedule.go, lists.go, names.go   steps, schedules and limits, and their names in files
//	store       their Parquet files
//	policy      what makes schedules: auto, quick and joint among others; draft is what policies are made of, papers has simple ones and papers'
//	remat       schedules that recompute and copy nothing, and relax how fast such a step can be at best; evict runs steps that evict as they go
//	check       proves a schedule right; simulate and timeline run it in virtual time
//	lifetimes   what lives on the device under a schedule; gtbm places it as Dymem does
//	alpha       MEMO's fraction in closed form
//	link        how fast copies are, measured; testbed the machines of papers
//	partition   what compiled graphs save for their backward pass
//	workspace   how operators run that have options; scheduling a policy's schedule as a file, alone or together with that
//	request     what a running program asks for, and answer, which makes it by a policy
//	engine      copies of a running program; host is the pinned memory that they go to
package swap
