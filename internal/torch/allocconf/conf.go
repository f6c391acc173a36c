// Package allocconf reads and writes the settings of PyTorch's caching allocator, the value of PYTORCH_CUDA_ALLOC_CONF:
// name:value,name:value.
package allocconf

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// MinBlock is what PyTorch rounds sizes up to, in bytes.
const MinBlock = 512

// Classes is the number of classes of roundup_power2_divisions: one for each power of two from 1 MiB to 32 GiB and above.
const Classes = 16

// Conf is the settings that change what the allocator does with memory.
type Conf struct {
	MaxSplitSize        int64   // bytes; larger blocks are never split; 0 is no limit
	MaxNonSplitRounding int64   // bytes by which an unsplittable block may exceed the request
	GCThreshold         float64 // share of the limit above which unused blocks are collected; 0 is never
	MemoryFraction      float64 // share of the device that may be reserved
	LargeSegment        int64   // bytes of the segments that requests of 1 to 10 MiB share
	Expandable          bool
	Divisions           [Classes]int64 // steps between two powers of two that sizes are rounded to; 0 is none
}

// Default returns PyTorch's defaults.
func Default() Conf {
	return Conf{MaxNonSplitRounding: 20 << 20, LargeSegment: 20 << 20, MemoryFraction: 1}
}

// ReleasesEarly reports whether the allocator may release segments without emptying its whole cache.
func (c *Conf) ReleasesEarly() bool { return c.MaxSplitSize > 0 || c.GCThreshold > 0 }

// NeedsLimit reports whether a setting is a share of the memory that may be reserved.
func (c *Conf) NeedsLimit() bool { return c.GCThreshold > 0 || c.MemoryFraction < 1 }

// RoundSize returns the size of the block for a request of size bytes.
func (c *Conf) RoundSize(size int64) int64 {
	if size < MinBlock {
		return MinBlock
	}
	log := bits.Len64(uint64(size)) - 1
	if n := c.Divisions[min(max(log-20, 0), Classes-1)]; n > 1 && size > MinBlock*n {
		return roundUp(size, int64(1)<<log/n)
	}
	return roundUp(size, MinBlock)
}

func roundUp(n, multiple int64) int64 { return (n + multiple - 1) / multiple * multiple }

// String returns the value of PYTORCH_CUDA_ALLOC_CONF, "" for the defaults. [Parse] reads it back.
func (c Conf) String() string { return strings.Join(c.Settings(), ",") }

// Settings returns what differs from the default, as name:value.
func (c Conf) Settings() []string {
	var parts []string
	standard := Default()
	mib := func(name string, bytes, usual int64) {
		if bytes != usual {
			parts = append(parts, fmt.Sprintf("%s:%d", name, bytes>>20))
		}
	}
	if c.Expandable {
		parts = append(parts, "expandable_segments:True")
	}
	mib("max_split_size_mb", c.MaxSplitSize, standard.MaxSplitSize)
	mib("max_non_split_rounding_mb", c.MaxNonSplitRounding, standard.MaxNonSplitRounding)
	mib("large_segment_size_mb", c.LargeSegment, standard.LargeSegment)
	if text := c.divisions(); text != "" {
		parts = append(parts, "roundup_power2_divisions:"+text)
	}
	if c.GCThreshold > 0 {
		parts = append(parts, "garbage_collection_threshold:"+strconv.FormatFloat(c.GCThreshold, 'g', -1, 64))
	}
	if c.MemoryFraction < 1 {
		parts = append(parts, "per_process_memory_fraction:"+strconv.FormatFloat(c.MemoryFraction, 'g', -1, 64))
	}
	return parts
}

// divisions returns the steps of all classes of sizes: one number where all are equal, "" where there are none, otherwise a list. The first
// key of the list, in MiB, stands for all classes up to it, and ">" for the class before it and all above.
func (c Conf) divisions() string {
	last := len(c.Divisions) - 1
	first, rest := 0, last
	for first < last && c.Divisions[first+1] == c.Divisions[0] {
		first++
	}
	if first == last {
		if c.Divisions[0] == 0 {
			return ""
		}
		return strconv.FormatInt(c.Divisions[0], 10)
	}
	for c.Divisions[rest-1] == c.Divisions[last] {
		rest--
	}
	var list []string
	for class := first; class <= rest; class++ {
		list = append(list, fmt.Sprintf("%d:%d", 1<<class, c.Divisions[class]))
	}
	return "[" + strings.Join(append(list, fmt.Sprintf(">:%d", c.Divisions[last])), ",") + "]"
}
