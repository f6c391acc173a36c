package allocconf

import (
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// parsers are the settings by their names in PyTorch. A nil entry is one that does not touch the layout of memory.
var parsers = map[string]func(c *Conf, value string) error{
	"expandable_segments": func(c *Conf, value string) (err error) {
		c.Expandable, err = parseBool(value)
		return err
	},
	"max_split_size_mb": func(c *Conf, value string) (err error) {
		c.MaxSplitSize, err = parseMiB(value, 20)
		return err
	},
	"max_non_split_rounding_mb": func(c *Conf, value string) (err error) {
		c.MaxNonSplitRounding, err = parseMiB(value, 20)
		return err
	},
	"large_segment_size_mb": func(c *Conf, value string) (err error) {
		c.LargeSegment, err = parseMiB(value, 10)
		if err == nil && c.LargeSegment%(2<<20) != 0 {
			return fmt.Errorf("%q is not a multiple of 2", value)
		}
		return err
	},
	"garbage_collection_threshold": func(c *Conf, value string) (err error) {
		c.GCThreshold, err = parseShare(value)
		return err
	},
	"per_process_memory_fraction": func(c *Conf, value string) (err error) {
		c.MemoryFraction, err = parseShare(value)
		return err
	},
	"roundup_power2_divisions":          func(c *Conf, value string) error { return c.parseDivisions(value) },
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

// Parse reads settings in the syntax of PYTORCH_CUDA_ALLOC_CONF, "name:value,name:value", with "=" allowed for
// the first ":" of a setting. Settings that change nothing about the layout of memory are accepted and left alone.
func Parse(text string) (Conf, error) {
	conf := Default()
	for _, setting := range Split(text) {
		if err := conf.set(setting); err != nil {
			return conf, err
		}
	}
	return conf, nil
}

// Recorded reads the settings that an allocator was recorded with, and returns those that it does not know, as a newer PyTorch may
// have.
func Recorded(text string) (conf Conf, unknown []string) {
	conf = Default()
	for _, setting := range Split(text) {
		if err := conf.set(setting); err != nil {
			unknown = append(unknown, strings.TrimSpace(setting))
		}
	}
	return conf, unknown
}

// set reads one setting, which may be empty.
func (c *Conf) set(setting string) error {
	if setting = strings.TrimSpace(setting); setting == "" {
		return nil
	}
	name, value, ok := Cut(setting)
	if !ok {
		return fmt.Errorf("allocator setting %q has no value", setting)
	}
	parse, known := parsers[name]
	if !known {
		return fmt.Errorf("unknown allocator setting %q, expected one of %s", name, strings.Join(slices.Sorted(maps.Keys(parsers)), ", "))
	}
	if parse == nil {
		return nil
	}
	if err := parse(c, value); err != nil {
		return fmt.Errorf("allocator setting %s: %w", name, err)
	}
	return nil
}

// Cut returns the name and the value of one setting, name:value or name=value. It says whether there is a value.
func Cut(setting string) (name, value string, ok bool) {
	at := strings.IndexAny(setting, ":=")
	if at < 0 {
		return "", "", false
	}
	return strings.TrimSpace(setting[:at]), strings.TrimSpace(setting[at+1:]), true
}

// Split cuts text at its commas, except those within a [list].
func Split(text string) []string {
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

// maxMiB is the largest size: far above any GPU, far below an overflow.
const maxMiB = 1 << 27

func parseMiB(value string, least int64) (int64, error) {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < least || n > maxMiB {
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

func parseBackend(_ *Conf, value string) error {
	if value != "native" {
		return fmt.Errorf("%q is not simulated, only native is", value)
	}
	return nil
}

// parseDivisions reads a number for all sizes, or a list such as [256:1,512:2,>:4] whose keys are powers of two in MiB.
func (c *Conf) parseDivisions(value string) error {
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
			class = Classes - 1
		} else {
			mib, err := strconv.ParseUint(key, 10, 32)
			if err != nil || bits.OnesCount64(mib) != 1 {
				return fmt.Errorf("%q is not a power of two", key)
			}
			class = min(bits.Len64(mib)-1, Classes-1)
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
