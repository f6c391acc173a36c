package main

import (
	"fmt"

	"gm/internal/bench/remedy"
	"gm/internal/trace/failure"
	"gm/internal/units"
)

// nearlyFull is the share of the memory above which there is little to win by a better layout.
const nearlyFull = 0.95

// verdictOf says why a request failed, as paragraphs.
func verdictOf(f *failure.Failure) []string {
	m := &f.Memory
	switch f.Cause {
	case failure.Full:
		return []string{full(f)}
	case failure.Fragmented:
		all := []string{fmt.Sprintf("FRAGMENTED: with this request the tensors need %s, and there are %s, %s more than that, but not in one piece: %s",
			size(f.Need), size(f.Room), size(f.Room-f.Need), unused(m))}
		if share := float64(f.Need) / float64(f.Room); share > nearlyFull {
			all = append(all, fmt.Sprintf("It is nearly full as well: in one piece, the tensors would fill %.1f%%.", 100*share))
		}
		return all
	case failure.Cached:
		return []string{fmt.Sprintf("CACHED: %s asked the driver, which has %s free. PyTorch's allocator keeps %s that no tensor uses, "+
			"and does not know of the request.", f.By, size(f.Free), size(m.Idle.All()))}
	case failure.Limited:
		return limitOf(f)
	}
	return []string{fmt.Sprintf("The trace does not say why: it has no segments of PyTorch's allocator. %s were live.", size(m.Live))}
}

func size(bytes int64) string { return units.Bytes(bytes).String() }

func full(f *failure.Failure) string {
	if f.By != "" {
		return fmt.Sprintf("FULL: the device has %s free, and PyTorch's allocator keeps only %s that no tensor uses.", size(f.Free), size(f.Memory.Idle.All()))
	}
	return fmt.Sprintf("FULL: with this request the tensors need %s, and there are %s: what PyTorch has reserved, and what is free on the device. "+
		"No allocator could have met it: %s less must live at that moment.", size(f.Need), size(f.Room), size(f.Need-f.Room))
}

// unused says what of the reserved memory the request could not use.
func unused(m *failure.Memory) string {
	text := size(m.Idle.All()+m.Tails) + " of what PyTorch has reserved are in no tensor"
	if m.Idle.Pieces > 0 {
		text += "; the largest piece that it could have had is of " + size(m.Largest)
	}
	return text + "."
}

// limitOf says which limit refused a request.
func limitOf(f *failure.Failure) []string {
	limit := ""
	switch f.Limit {
	case failure.OtherPrograms:
		return []string{fmt.Sprintf("LIMITED: other processes, and the driver itself, have %s of the device. Without them there would have been room: "+
			"nvidia-smi lists them.", size(f.Others()))}
	case failure.DriverLimit:
		limit = "Yet the driver refused the request: a limit of MPS, of a MIG instance or of a container, or memory that was freed right after it."
	case failure.Fraction:
		limit = "The setting per_process_memory_fraction of PYTORCH_CUDA_ALLOC_CONF refused the request: " + mayReserve(f)
	default:
		limit = "A limit of this process refused the request, most likely torch.cuda.set_per_process_memory_fraction: " + mayReserve(f)
	}
	all := []string{fmt.Sprintf("LIMITED: the device has %s free. %s", size(f.Free), limit)}
	if f.By != "" {
		return all
	}
	if f.Need > f.Most {
		return append(all, fmt.Sprintf("Within the limit the memory is full: with this request the tensors need %s.", size(f.Need)))
	}
	return append(all, fmt.Sprintf("Within the limit the memory is fragmented: with this request the tensors need %s, and %s",
		size(f.Need), unused(&f.Memory)))
}

// mayReserve says what PyTorch may reserve.
func mayReserve(f *failure.Failure) string {
	return fmt.Sprintf("PyTorch may reserve at least %s, and less than %s.", size(f.Room), size(f.Most+1))
}

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
			"recomputes what is saved for the backward pass. How little it can reach does not follow from a trace: "+
			"gmswap run --dry-run -m SIZE says so for a size.")
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
