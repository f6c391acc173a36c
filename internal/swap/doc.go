// Package swap holds what the parts of gmswap share: a training step as a graph of operators and tensors, a schedule of what is moved to
// the host and back during it, and the limits that a schedule must keep to.
//
// A graph is a list of operators in the order in which the compute stream runs them, forward pass first. A schedule is a list of actions,
// each at an operator: it is carried out by the program's thread right before that operator is launched, and it takes effect in the order of
// the streams. The program never waits for the GPU; the compute stream waits for copies, on the GPU, where an action or an operator says so.
// So memory is given back and taken in the order in which the program runs, and what a schedule takes does not depend on how fast copies are.
package swap
