// Package graphs makes graphs of training steps from the shapes of networks alone: the convolutional networks of Dymem's evaluation (HPDC
// 2020, section 4.3) layer by layer, the GPTs of MEMO (SIGMOD 2025, table 2) and Llamas operator by operator.
//
// Sizes are exact. Times are a roofline: an operator takes as long as its arithmetic or its traffic does, whichever is longer, at the rates
// that kernels reach on a named device. What is beside the tensors of a graph, in Op.Base, is the state of the parameters, gradients of
// activations, and what an operator holds while it runs.
package graphs
