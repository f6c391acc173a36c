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
		all := []string{fmt.Sprintf("FRAGMENTED: the tensors and this request need %s, and PyTorch could have had %s, but not in one piece. %s",
			bytes(f.Need), bytes(f.Room), unused(m))}
		if share := float64(f.Need) / float64(f.Room); share > nearlyFull {
			all = append(all, fmt.Sprintf("It was nearly full as well: without any gap, the tensors would have filled %.1f%%.", 100*share))
		}
		return all
	case failure.Cached:
		return []string{fmt.Sprintf("CACHED: %s asked the driver, which had %s free. PyTorch's allocator kept %s that no tensor used. "+
			"It does not learn of such requests.", f.By, bytes(f.Free), bytes(m.Idle.All()))}
	case failure.Limited:
		return limitOf(f)
	}
	return []string{fmt.Sprintf("The trace does not say why: it has no segments of PyTorch's allocator. Live were %s.", bytes(m.Live))}
}

func full(f *failure.Failure) string {
	if f.By != "" {
		return fmt.Sprintf("FULL: the device had %s free, and PyTorch's allocator kept only %s that no tensor used.", bytes(f.Free), bytes(f.Memory.Idle.All()))
	}
	if tensors := f.Memory.Tensors(); f.Alone() {
		return fmt.Sprintf("FULL: this request alone needs %s, beside %s of tensors. PyTorch had %s: what it had reserved, and what was free on the "+
			"device. No allocator could have met the request.", bytes(f.Need-tensors), bytes(tensors), bytes(f.Room))
	}
	return fmt.Sprintf("FULL: the tensors and this request need %s. PyTorch had %s: what it had reserved, and what was free on the device. "+
		"No allocator could have met the request: it takes %s less of tensors.", bytes(f.Need), bytes(f.Room), bytes(f.Need-f.Room))
}

// unused says what of the reserved memory the request could not use.
func unused(m *failure.Memory) string {
	text := "PyTorch had reserved " + bytes(m.Idle.All()+m.Tails) + " that no tensor used"
	if m.Idle.Pieces > 0 {
		text += ", but the largest free piece that this request could use had " + bytes(m.Largest)
	}
	return text + "."
}

// limitOf says which limit refused a request.
func limitOf(f *failure.Failure) []string {
	limit := ""
	switch f.Limit {
	case failure.OtherPrograms:
		return []string{fmt.Sprintf("LIMITED: other processes, and the driver itself, held %s of the device. Without them the request would have been met. "+
			"nvidia-smi lists them.", bytes(f.Others()))}
	case failure.DriverLimit:
		limit = "yet the driver refused the request: by a limit of MPS, of a MIG instance or of a container, or because that memory was freed just after."
	case failure.Fraction:
		limit = "but the setting per_process_memory_fraction of PYTORCH_CUDA_ALLOC_CONF refused the request. " + mayReserve(f)
	default:
		limit = "but a limit of this process refused the request, most likely torch.cuda.set_per_process_memory_fraction. " + mayReserve(f)
	}
	all := []string{fmt.Sprintf("LIMITED: the device had %s free, %s", bytes(f.Free), limit)}
	if f.By != "" {
		return all
	}
	if f.Need > f.Most {
		return append(all, fmt.Sprintf("Within this limit the memory was full: the tensors and this request need %s.", bytes(f.Need)))
	}
	return append(all, fmt.Sprintf("Within this limit the memory was fragmented: the tensors and this request need only %s. %s",
		bytes(f.Need), unused(&f.Memory)))
}

// mayReserve says what PyTorch may reserve.
func mayReserve(f *failure.Failure) string {
	return fmt.Sprintf("The limit lies between %s and %s.", bytes(f.Room), bytes(f.Most+1))
}

func bytes(n int64) string { return units.Bytes(n).String() }
