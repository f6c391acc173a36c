package blocks

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// PyTorch's constants (c10/cuda/CUDACachingAllocator.cpp), in bytes.
const (
	minBlockSize = 512
	smallSize    = 1 << 20 // requests up to this size go to the small pool
	smallSegment = 2 << 20
	minLarge     = 10 << 20 // requests of at least this size get a segment of their own size
	roundLarge   = 2 << 20

	divisionClasses = 16 // one for each power of two from 1 MiB to 32 GiB and above
)

// TorchConf is the settings of PyTorch's caching allocator that change what it does with memory.
type TorchConf struct {
	MaxSplitSize        int64   // bytes; larger blocks are never split; 0 is no limit
	MaxNonSplitRounding int64   // bytes by which an unsplittable block may exceed the request
	GCThreshold         float64 // share of the limit above which unused blocks are collected; 0 is never
	MemoryFraction      float64 // share of the device that may be reserved
	LargeSegment        int64   // bytes of the segments that requests of 1 to 10 MiB share
	Expandable          bool
	Divisions           [divisionClasses]int64 // steps between two powers of two that sizes are rounded to; 0 is none
}

// DefaultTorchConf returns PyTorch's defaults.
func DefaultTorchConf() TorchConf {
	return TorchConf{MaxNonSplitRounding: 20 << 20, LargeSegment: 20 << 20, MemoryFraction: 1}
}

// ReleasesEarly says whether the allocator may give segments back without emptying its whole cache.
func (c *TorchConf) ReleasesEarly() bool { return c.MaxSplitSize > 0 || c.GCThreshold > 0 }

// NeedsLimit says whether a setting is a share of what may be reserved.
func (c *TorchConf) NeedsLimit() bool { return c.GCThreshold > 0 || c.MemoryFraction < 1 }

// torchSettings are the settings by their PyTorch names. A nil entry is one that does not touch the layout of memory.
var torchSettings = map[string]func(c *TorchConf, value string) error{
	"expandable_segments": func(c *TorchConf, value string) (err error) {
		c.Expandable, err = parseBool(value)
		return err
	},
	"max_split_size_mb": func(c *TorchConf, value string) (err error) {
		c.MaxSplitSize, err = parseMiB(value, 20)
		return err
	},
	"max_non_split_rounding_mb": func(c *TorchConf, value string) (err error) {
		c.MaxNonSplitRounding, err = parseMiB(value, 20)
		return err
	},
	"large_segment_size_mb": func(c *TorchConf, value string) (err error) {
		c.LargeSegment, err = parseMiB(value, 10)
		if err == nil && c.LargeSegment%roundLarge != 0 {
			return fmt.Errorf("%q is not a multiple of 2", value)
		}
		return err
	},
	"garbage_collection_threshold": func(c *TorchConf, value string) (err error) {
		c.GCThreshold, err = parseShare(value)
		return err
	},
	"per_process_memory_fraction": func(c *TorchConf, value string) (err error) {
		c.MemoryFraction, err = parseShare(value)
		return err
	},
	"roundup_power2_divisions":          func(c *TorchConf, value string) error { return c.parseDivisions(value) },
	"backend":                           parseBackend,
	"release_lock_on_cudamalloc":        nil,
	"release_lock_on_hipmalloc":         nil,
	"pinned_use_cuda_host_register":     nil,
	"pinned_use_hip_host_register":      nil,
	"pinned_num_register_threads":       nil,
	"pinned_reserve_segment_size_mb":    nil,
	"pinned_use_background_threads":     nil,
	"graph_capture_record_stream_reuse": nil, // which free waits for which event is taken from the recording
	"throw_on_cudamalloc_oom":           nil,
}

// ParseTorchConf reads settings in the syntax of PYTORCH_CUDA_ALLOC_CONF, "name:value,name:value", with "=" allowed for
// the first ":" of a setting. Settings that change nothing about the layout of memory are accepted and left alone.
func ParseTorchConf(text string) (TorchConf, error) {
	conf := DefaultTorchConf()
	for _, setting := range SplitSettings(text) {
		if err := conf.set(setting); err != nil {
			return conf, err
		}
	}
	return conf, nil
}

// RecordedTorchConf reads the settings that an allocator was recorded with. Those that are not known, as a newer PyTorch may have,
// are returned.
func RecordedTorchConf(text string) (conf TorchConf, unknown []string) {
	conf = DefaultTorchConf()
	for _, setting := range SplitSettings(text) {
		if err := conf.set(setting); err != nil {
			unknown = append(unknown, strings.TrimSpace(setting))
		}
	}
	return conf, unknown
}

// set reads one setting, which may be empty.
func (c *TorchConf) set(setting string) error {
	if setting = strings.TrimSpace(setting); setting == "" {
		return nil
	}
	cut := strings.IndexAny(setting, ":=")
	if cut < 0 {
		return fmt.Errorf("allocator setting %q has no value", setting)
	}
	name := strings.TrimSpace(setting[:cut])
	parse, known := torchSettings[name]
	if !known {
		return fmt.Errorf("unknown allocator setting %q", name)
	}
	if parse == nil {
		return nil
	}
	if err := parse(c, strings.TrimSpace(setting[cut+1:])); err != nil {
		return fmt.Errorf("allocator setting %s: %w", name, err)
	}
	return nil
}

// SplitSettings cuts text at its commas, but for those in a [list].
func SplitSettings(text string) []string {
	var parts []string
	depth, start := 0, 0
	for i, c := range text {
		switch {
		case c == '[':
			depth++
		case c == ']':
			depth--
		case c == ',' && depth == 0:
			parts = append(parts, text[start:i])
			start = i + 1
		}
	}
	return append(parts, text[start:])
}

func parseBool(value string) (bool, error) {
	switch strings.ToLower(value) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, fmt.Errorf("%q is neither True nor False", value)
}

func parseMiB(value string, least int64) (int64, error) {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < least || n > MaxSize>>20 {
		return 0, fmt.Errorf("%q is not a whole number of MiB, %d or more", value, least)
	}
	return n << 20, nil
}

func parseShare(value string) (float64, error) {
	x, err := strconv.ParseFloat(value, 64)
	if err != nil || !(x > 0 && x <= 1) {
		return 0, fmt.Errorf("%q is not a number above 0 and up to 1", value)
	}
	return x, nil
}

func parseBackend(_ *TorchConf, value string) error {
	if value != "native" {
		return fmt.Errorf("%q is not simulated, only native is", value)
	}
	return nil
}

// parseDivisions reads a number for all sizes, or a list such as [256:1,512:2,>:4] whose keys are powers of two in MiB.
func (c *TorchConf) parseDivisions(value string) error {
	list, isList := strings.CutPrefix(value, "[")
	if !isList {
		n, err := parseDivision(value)
		for i := range c.Divisions {
			c.Divisions[i] = n
		}
		return err
	}
	class, first := 0, true
	for _, entry := range strings.Split(strings.TrimSuffix(list, "]"), ",") {
		key, text, _ := strings.Cut(entry, ":")
		n, err := parseDivision(strings.TrimSpace(text))
		if err != nil {
			return err
		}
		from := class
		if key = strings.TrimSpace(key); key == ">" {
			class = divisionClasses - 1
		} else {
			mib, err := strconv.ParseUint(key, 10, 32)
			if err != nil || bits.OnesCount64(mib) != 1 {
				return fmt.Errorf("%q is not a power of two", key)
			}
			class = min(bits.Len64(mib)-1, divisionClasses-1)
			if !first {
				from = class
			}
		}
		for i := from; i <= class; i++ {
			c.Divisions[i] = n
		}
		first = false
	}
	return nil
}

func parseDivision(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 || n&(n-1) != 0 {
		return 0, fmt.Errorf("%q is neither 0 nor a power of two", text)
	}
	return n, nil
}

// RoundSize returns the size of the block for a request of size bytes.
func (c *TorchConf) RoundSize(size int64) int64 {
	if size < minBlockSize {
		return minBlockSize
	}
	log := bits.Len64(uint64(size)) - 1
	if n := c.Divisions[min(max(log-20, 0), divisionClasses-1)]; n > 1 && size > minBlockSize*n {
		return roundUp(size, int64(1)<<log/n)
	}
	return roundUp(size, minBlockSize)
}

// segmentSize returns how much is taken from the device for a block of size bytes.
func (c *TorchConf) segmentSize(size int64) int64 {
	switch {
	case size <= smallSize:
		return smallSegment
	case size < minLarge:
		return c.LargeSegment
	}
	return roundUp(size, roundLarge)
}

// shouldSplit says whether what a block of size bytes leaves of a free one of have bytes becomes a block of its own.
func (c *TorchConf) shouldSplit(have, size int64, small, expandable bool) bool {
	rest := have - size
	if small || expandable {
		return rest >= minBlockSize
	}
	return (c.MaxSplitSize == 0 || size < c.MaxSplitSize) && rest > smallSize
}
