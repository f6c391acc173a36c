package main

import (
	"fmt"

	"gm/internal/bench/remedy"
	"gm/internal/trace/failure"
)

// swapOf says how little memory gmswap run may need, and what that is derived from.
func swapOf(f *oomOf) string {
	m := f.Movable
	if m == nil {
		return "No figure for gmswap run -m: the tags do not tell activations and optimizer state from the rest."
	}
	text := fmt.Sprintf("gmswap run -m %s would have been enough up to the request, by %s: ", size(m.Least), basis(m))
	if fits(f) == remedy.No {
		text = fmt.Sprintf("Not even gmswap run would have met the request, by %s: it needs %s. ", basis(m), size(m.Least))
	}
	text += fmt.Sprintf("of what lived then, %s of activations and %s of optimizer state could have waited on the host. All other tensors stay",
		size(m.Activations), size(m.States))
	if m.Work > 0 {
		text += fmt.Sprintf(", and with them %s, the two largest activations, for the operator that runs", size(m.Work))
	}
	text += "."
	if m.Unknown > 0 {
		text += fmt.Sprintf(" %s of unknown tensors count as what stays.", size(m.Unknown))
	}
	return text + " gmswap run --dry-run -m SIZE says how long a step takes then."
}

// basis says what the figure is.
func basis(m *failure.Movable) string {
	if m.Guess {
		return "a guess from guessed tags"
	}
	return "an estimate from the tags"
}

// fits says whether the figure is within the memory that there was.
func fits(f *oomOf) remedy.Answer {
	switch least := f.Movable.Least; {
	case f.Cause == failure.Unknown || least > f.Room && least <= f.Most:
		return remedy.Unsure
	case least > f.Room:
		return remedy.No
	}
	return remedy.Yes
}
