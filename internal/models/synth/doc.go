// Package synth makes traces of the training of transformers from their shapes: each tensor that PyTorch 2.11 with the models of Hugging
// Face transformers allocates in a step, in its order, with its size and its life.
//
// A step is executed as PyTorch does, on tensors that have a size and no contents. Operators take their outputs and workspaces from a
// machine and record what their backward pass needs; the backward pass runs the records in reverse, as autograd does; references are
// counted, so that memory is freed where PyTorch does. Recomputation, LoRA, FSDP and offload come from this, not from tables.
// Held against recordings: see the figure synth.
package synth
