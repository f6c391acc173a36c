package main

import (
	"fmt"

	"gm/internal/bench/remedy"
	"gm/internal/trace/failure"
	"gm/internal/units"
)

func size(bytes int64) string { return units.Bytes(bytes).String() }

// adviceOf says what can be done, as paragraphs.
func adviceOf(f *oomOf) []string {
	var all []string
	if len(f.Leaks) > 0 {
		all = append(all, "Look at the leak first: memory that grows with each iteration fills any card, with any setting.")
	}
	if f.Replays != nil {
		all = append(all, replaysOf(f)...)
	}
	switch {
	case f.Cause == failure.Cached:
		all = append(all, "torch.cuda.empty_cache() before the call gives back the segments that are free as a whole. "+
			"garbage_collection_threshold:0.8 keeps fewer of them.")
	case f.Cause == failure.Unknown:
		all = append(all, "A snapshot of PyTorch, or gmtrace run, records the segments.")
	case f.Cause == failure.Limited && f.Limit != failure.OtherPrograms:
		all = append(all, "Raise the limit if the card is yours alone.")
	}
	if f.Replays != nil && len(f.Replays.Trials) > 0 {
		all = append(all, "gmbench tune tries some 100 settings, and gmbench --why says which tensors keep memory from being used.")
	}
	if f.Alone() {
		return append(all, "To need less, make batches smaller, sequences shorter or the model smaller.")
	}
	if f.Need > f.Room || f.Cause == failure.Unknown {
		less := "To need less, make batches smaller or sequences shorter, or use torch.utils.checkpoint"
		if f.Movable == nil || swaps(f) {
			less += " or gmswap run -m SIZE, which moves or recomputes what is saved for the backward pass"
		}
		all = append(all, less+".")
	}
	if f.By == "" {
		all = append(all, swapOf(f))
	}
	return all
}

// replaysOf says what replays have shown.
func replaysOf(f *oomOf) []string {
	var all []string
	const approximate = "Take the other answers as approximate."
	r := f.Replays
	if r.Recorded.Met != remedy.No {
		all = append(all, "Replayed with the recorded settings, PyTorch's allocator meets the request that failed. "+approximate)
	} else if r.Recorded.Row != f.Row {
		all = append(all, fmt.Sprintf("Replayed with the recorded settings, PyTorch's allocator fails before it did, at row %d. %s", r.Recorded.Row, approximate))
	}
	met := map[remedy.Answer]bool{}
	for _, t := range r.Trials {
		met[t.Met] = true
	}
	if met[remedy.Unsure] {
		all = append(all, fmt.Sprintf("unsure: it fits in %s and does not in %s. The limit lies between the two.", size(f.Most), size(f.Room)))
	}
	if met[remedy.Unknown] {
		all = append(all, "unknown: the recording begins midway. What was in memory before it would have been laid out in another way, and laid out anew "+
			"it leaves room for the request with the recorded settings, too. A recording from the start of the program answers it.")
	}
	if r.Card != nil {
		all = append(all, fmt.Sprintf("With the same settings, the smallest card that meets the request is %s (%d GB), if nothing else runs on it.",
			r.Card.Name, r.Card.GB))
	} else {
		all = append(all, "With the same settings, no card that gm knows meets the request.")
	}
	return append(all, "All this holds up to the request that failed: what the program would have asked for next is not known.")
}
