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
		return "No figure for gmswap run -m: the tags name nothing that it could move, or too little of the rest."
	}
	if !swaps(f) {
		return fmt.Sprintf("gmswap run would hardly help, by %s. Of what lived then, %s could have waited on the host%s", basis(m), movableOf(m), hardly(m))
	}
	text := fmt.Sprintf("gmswap run -m %s would have been enough up to this request, by %s. ", size(m.Least), basis(m))
	if fits(f) == remedy.No {
		text = fmt.Sprintf("Not even gmswap run would have met the request, by %s: it needs %s. ", basis(m), size(m.Least))
	}
	text += fmt.Sprintf("Of what lived then, %s could have waited on the host. All other tensors stay", movableOf(m))
	if m.Work > 0 {
		text += fmt.Sprintf(", and %s for the operator that runs: as much as the two largest activations", size(m.Work))
	}
	text += "."
	if m.Unknown > 0 {
		text += fmt.Sprintf(" Tensors whose tag is unknown stay, too: %s.", size(m.Unknown))
	}
	return text + " gmswap run --dry-run -m SIZE says how long a step would take."
}

// movableOf says what could have waited on the host.
func movableOf(m *failure.Movable) string {
	switch {
	case m.States == 0:
		return size(m.Activations) + " of activations"
	case m.Activations == 0:
		return size(m.States) + " of optimizer state"
	}
	return fmt.Sprintf("%s of activations and %s of optimizer state", size(m.Activations), size(m.States))
}

// hardly ends the sentence about what could have waited on the host where that is not enough to help.
func hardly(m *failure.Movable) string {
	if m.Work >= m.Activations+m.States {
		return ", and the operator that runs may need all of it."
	}
	return "."
}

// swaps reports whether there is a figure for gmswap run: it moves enough to count on, or what it moves decides.
func swaps(f *oomOf) bool {
	return f.Movable != nil && (f.Movable.Helps() || f.Cause == failure.Full)
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
