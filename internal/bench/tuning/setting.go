// Package tuning looks for the settings of PyTorch's caching allocator that suit recorded runs best.
package tuning

import (
	"fmt"
	"strconv"
	"strings"

	"gm/internal/blocks"
)

// Setting is what PYTORCH_CUDA_ALLOC_CONF says. The zero value is no setting; use [Default].
type Setting struct{ blocks.TorchConf }

// Default returns what PyTorch does without PYTORCH_CUDA_ALLOC_CONF.
func Default() Setting { return Setting{blocks.DefaultTorchConf()} }

// Expandable returns the default with expandable segments.
func Expandable() Setting {
	s := Default()
	s.Expandable = true
	return s
}

// String returns the value of PYTORCH_CUDA_ALLOC_CONF, "" for the default.
func (s Setting) String() string { return strings.Join(s.parts(), ",") }

// Changes returns how many settings differ from the default, each interval of roundup_power2_divisions counted for itself.
func (s Setting) Changes() int {
	n := len(s.parts())
	for i := 1; i < len(s.Divisions); i++ {
		if s.Divisions[i] != s.Divisions[i-1] {
			n++
		}
	}
	return n
}

// parts returns what differs from the default, as name:value.
func (s Setting) parts() []string {
	var parts []string
	standard := blocks.DefaultTorchConf()
	mib := func(name string, bytes, usual int64) {
		if bytes != usual {
			parts = append(parts, fmt.Sprintf("%s:%d", name, bytes>>20))
		}
	}
	if s.Expandable {
		parts = append(parts, "expandable_segments:True")
	}
	mib("max_split_size_mb", s.MaxSplitSize, standard.MaxSplitSize)
	mib("max_non_split_rounding_mb", s.MaxNonSplitRounding, standard.MaxNonSplitRounding)
	mib("large_segment_size_mb", s.LargeSegment, standard.LargeSegment)
	if text := s.divisions(); text != "" {
		parts = append(parts, "roundup_power2_divisions:"+text)
	}
	if s.GCThreshold > 0 {
		parts = append(parts, "garbage_collection_threshold:"+strconv.FormatFloat(s.GCThreshold, 'g', -1, 64))
	}
	if s.MemoryFraction < 1 {
		parts = append(parts, "per_process_memory_fraction:"+strconv.FormatFloat(s.MemoryFraction, 'g', -1, 64))
	}
	return parts
}

// divisions returns the steps of all classes of sizes: one number where they are equal, "" where there are none, or else a list. Its first
// key, in MiB, is of all classes up to it, ">" of the class before it and all above.
func (s Setting) divisions() string {
	last := len(s.Divisions) - 1
	first, rest := 0, last
	for first < last && s.Divisions[first+1] == s.Divisions[0] {
		first++
	}
	if first == last {
		if s.Divisions[0] == 0 {
			return ""
		}
		return strconv.FormatInt(s.Divisions[0], 10)
	}
	for s.Divisions[rest-1] == s.Divisions[last] {
		rest--
	}
	var list []string
	for class := first; class <= rest; class++ {
		list = append(list, fmt.Sprintf("%d:%d", 1<<class, s.Divisions[class]))
	}
	return "[" + strings.Join(append(list, fmt.Sprintf(">:%d", s.Divisions[last])), ",") + "]"
}
