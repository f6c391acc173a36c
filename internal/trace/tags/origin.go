package tags

import "strings"

// origin is what the code that made an allocation does, according to its stack.
type origin uint8

const (
	unsaid   origin = iota // no stack, or one of unknown code
	building               // modules are created, moved or loaded
	forward
	recompute // a forward pass within the backward pass
	backward
	update // by the optimizer
)

// originOf returns the origin of a folded stack, "outermost;...;innermost": that of the innermost frame that has one.
func originOf(folded string) origin {
	frames := strings.Split(folded, ";")
	for i := len(frames) - 1; i >= 0; i-- {
		name, file, _ := strings.Cut(frames[i], " (")
		switch o := originOfFrame(name, file); o {
		case unsaid:
		case forward:
			return forwardOrAgain(frames[:i])
		default:
			return o
		}
	}
	return unsaid
}

// forwardOrAgain returns forward, or recompute if the frames around a forward pass show that it runs within the backward pass.
func forwardOrAgain(outer []string) origin {
	for _, f := range outer {
		name, file, _ := strings.Cut(f, " (")
		switch originOfFrame(name, file) {
		case backward, recompute:
			return recompute
		}
	}
	return forward
}

func originOfFrame(name, file string) origin {
	switch {
	case strings.Contains(file, "torch/utils/checkpoint.py") && (name == "unpack_hook" || name == "recompute_fn" || name == "backward"):
		return recompute
	case isOptimizer(file):
		return update
	case name == "backward", name == "_make_grads", strings.Contains(name, "autograd::Engine::"), strings.HasPrefix(name, "autograd::engine::"), strings.HasPrefix(name, "torch::autograd::Node::operator()"):
		return backward
	case name == "forward", name == "_call_impl":
		return forward
	case isBuilding(name, file):
		return building
	}
	return unsaid
}

// isOptimizer reports whether a file belongs to an optimizer of PyTorch, or of another package with the same folder names.
func isOptimizer(file string) bool {
	return strings.Contains(file, "/optim/") || strings.Contains(file, "/optimizers/") || strings.Contains(file, "/ops/adam/")
}

// isBuilding reports whether modules are created, moved to the device or loaded.
func isBuilding(name, file string) bool {
	switch name {
	case "_apply", "reset_parameters", "from_pretrained", "_load_state_dict_into_model", "load_state_dict":
		return true
	case "__init__":
		return strings.Contains(file, "torch/nn/")
	}
	return strings.Contains(file, "torch/nn/init.py")
}
