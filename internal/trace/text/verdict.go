package text

import (
	"fmt"

	"gm/internal/trace/failure"
	"gm/internal/units"
)

// nearlyFull is the share of the memory above which there is little to win by a better layout.
const nearlyFull = 0.95

// Verdict says why a request failed, as paragraphs.
func Verdict(f *failure.Failure) []string {
	m := &f.Memory
	switch f.Cause {
	case failure.Full:
		return []string{full(f)}
	case failure.Fragmented:
		all := []string{fmt.Sprintf("FRAGMENTED: with this request the tensors need %s, and there are %s, %s more than that, but not in one piece: %s",
			bytes(f.Need), bytes(f.Room), bytes(f.Room-f.Need), unused(m))}
		if share := float64(f.Need) / float64(f.Room); share > nearlyFull {
			all = append(all, fmt.Sprintf("It is nearly full as well: in one piece, the tensors would fill %.1f%%.", 100*share))
		}
		return all
	case failure.Cached:
		return []string{fmt.Sprintf("CACHED: %s asked the driver, which has %s free. PyTorch's allocator keeps %s that no tensor uses, "+
			"and does not know of the request.", f.By, bytes(f.Free), bytes(m.Idle.All()))}
	case failure.Limited:
		return limitOf(f)
	}
	return []string{fmt.Sprintf("The trace does not say why: it has no segments of PyTorch's allocator. %s were live.", bytes(m.Live))}
}

func full(f *failure.Failure) string {
	if f.By != "" {
		return fmt.Sprintf("FULL: the device has %s free, and PyTorch's allocator keeps only %s that no tensor uses.", bytes(f.Free), bytes(f.Memory.Idle.All()))
	}
	return fmt.Sprintf("FULL: with this request the tensors need %s, and there are %s: what PyTorch has reserved, and what is free on the device. "+
		"No allocator could have met it: %s less must live at that moment.", bytes(f.Need), bytes(f.Room), bytes(f.Need-f.Room))
}

// unused says what of the reserved memory the request could not use.
func unused(m *failure.Memory) string {
	text := bytes(m.Idle.All()+m.Tails) + " of what PyTorch has reserved are in no tensor"
	if m.Idle.Pieces > 0 {
		text += "; the largest piece that it could have had is of " + bytes(m.Largest)
	}
	return text + "."
}

// limitOf says which limit refused a request.
func limitOf(f *failure.Failure) []string {
	limit := ""
	switch f.Limit {
	case failure.OtherPrograms:
		return []string{fmt.Sprintf("LIMITED: other processes, and the driver itself, have %s of the device. Without them there would have been room: "+
			"nvidia-smi lists them.", bytes(f.Others()))}
	case failure.DriverLimit:
		limit = "Yet the driver refused the request: a limit of MPS, of a MIG instance or of a container, or memory that was freed right after it."
	case failure.Fraction:
		limit = "The setting per_process_memory_fraction of PYTORCH_CUDA_ALLOC_CONF refused the request: " + mayReserve(f)
	default:
		limit = "A limit of this process refused the request, most likely torch.cuda.set_per_process_memory_fraction: " + mayReserve(f)
	}
	all := []string{fmt.Sprintf("LIMITED: the device has %s free. %s", bytes(f.Free), limit)}
	if f.By != "" {
		return all
	}
	if f.Need > f.Most {
		return append(all, fmt.Sprintf("Within the limit the memory is full: with this request the tensors need %s.", bytes(f.Need)))
	}
	return append(all, fmt.Sprintf("Within the limit the memory is fragmented: with this request the tensors need %s, and %s",
		bytes(f.Need), unused(&f.Memory)))
}

// mayReserve says what PyTorch may reserve.
func mayReserve(f *failure.Failure) string {
	return fmt.Sprintf("PyTorch may reserve at least %s, and less than %s.", bytes(f.Room), bytes(f.Most+1))
}

func bytes(n int64) string { return units.Bytes(n).String() }
