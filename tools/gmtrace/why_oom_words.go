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
		all = append(all, "Look at the leak first: what grows with each iteration fills any card, with any setting.")
	}
	if f.Replays != nil {
		all = append(all, replaysOf(f)...)
	}
	switch {
	case f.Cause == failure.Cached:
		all = append(all, "torch.cuda.empty_cache() before the call gives that memory back, as far as whole segments are free; "+
			"garbage_collection_threshold:0.8 keeps less of it.")
	case f.Cause == failure.Unknown:
		all = append(all, "A snapshot of PyTorch, or gmtrace run, records the segments.")
	case f.Cause == failure.Limited && f.Limit != failure.OtherPrograms:
		all = append(all, "Raise the limit if the card is yours alone.")
	}
	if f.Replays != nil && len(f.Replays.Trials) > 0 {
		all = append(all, "gmbench tune tries some 100 settings, and gmbench --why says which tensors keep memory from being used.")
	}
	if f.Need > f.Room || f.Cause == failure.Unknown {
		all = append(all, "To need less: a smaller batch or shorter sequences, torch.utils.checkpoint, or gmswap run -m SIZE, which moves or "+
			"recomputes what is saved for the backward pass.")
	}
	if f.By == "" {
		all = append(all, swapOf(f))
	}
	return all
}

// replaysOf says what replays have shown.
func replaysOf(f *oomOf) []string {
	var all []string
	const approximate = "take the other replays as approximate."
	r := f.Replays
	if r.Recorded.Met != remedy.No {
		all = append(all, "The replay of PyTorch's allocator as it was set gets past the request that failed: "+approximate)
	} else if r.Recorded.Row != f.Row {
		all = append(all, fmt.Sprintf("The replay of PyTorch's allocator as it was set fails before it did, at row %d: %s", r.Recorded.Row, approximate))
	}
	met := map[remedy.Answer]bool{}
	for _, t := range r.Trials {
		met[t.Met] = true
	}
	if met[remedy.Unsure] {
		all = append(all, fmt.Sprintf("unsure: not in %s, but in %s, and the limit is between the two.", size(f.Room), size(f.Most)))
	}
	if met[remedy.Unknown] {
		all = append(all, "unknown: the recording begins midway, with memory that would have been laid out in another way. With a new layout the "+
			"settings as they were would have met the request, too. A recording from the start of the program answers it.")
	}
	if r.Card != nil {
		all = append(all, fmt.Sprintf("Smallest card on which the settings as they were meet the request, with nothing else on it: %s (%d GB).",
			r.Card.Name, r.Card.GB))
	} else {
		all = append(all, "No larger card that gm knows meets the request with the settings as they were.")
	}
	return append(all, "Replays end with the request that failed: what the program would have asked for next is not known.")
}
