package tags

import "strings"

// origin is what the code that made an allocation does, as far as its stack tells.
type origin uint8

const (
	unsaid   origin = iota // no stack, or one of code that is not known
	building               // modules are made, moved or loaded
	forward
	recompute // a forward pass within the backward pass
	backward
	update // by the optimizer
)

// originOf tells what a folded stack, "outermost;...;innermost", stands for: the innermost frame that tells decides.
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

// forwardOrAgain tells whether a forward pass is run within the backward pass, by the frames outside of it.
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
	case name == "backward", name == "_make_grads", strings.Contains(name, "autograd::Engine::"), strings.HasPrefix(name, "torch::autograd::Node::operator()"):
		return backward
	case name == "forward", name == "_call_impl":
		return forward
	case isBuilding(name, file):
		return building
	}
	return unsaid
}

// isOptimizer tells whether a file is of an optimizer, of PyTorch's or of those that other packages have in folders of such names.
func isOptimizer(file string) bool {
	return strings.Contains(file, "/optim/") || strings.Contains(file, "/optimizers/") || strings.Contains(file, "/ops/adam/")
}

// isBuilding tells whether modules are made, moved to the device or loaded.
func isBuilding(name, file string) bool {
	switch name {
	case "_apply", "reset_parameters", "from_pretrained", "_load_state_dict_into_model", "load_state_dict":
		return true
	case "__init__":
		return strings.Contains(file, "torch/nn/")
	}
	return strings.Contains(file, "torch/nn/init.py")
}
