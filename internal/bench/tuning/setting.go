// Package tuning searches for the settings of PyTorch's caching allocator that suit recorded runs best.
package tuning

import "gm/internal/torch/allocconf"

// Setting is a value of PYTORCH_CUDA_ALLOC_CONF. The zero value is no setting; use [Default].
type Setting struct{ allocconf.Conf }

// Default returns what PyTorch does without PYTORCH_CUDA_ALLOC_CONF.
func Default() Setting { return Setting{allocconf.Default()} }

// Expandable returns the default with expandable segments.
func Expandable() Setting {
	s := Default()
	s.Expandable = true
	return s
}

// Changes returns how many settings differ from the default, each interval of roundup_power2_divisions counted separately.
func (s Setting) Changes() int {
	n := len(s.Settings())
	for i := 1; i < len(s.Divisions); i++ {
		if s.Divisions[i] != s.Divisions[i-1] {
			n++
		}
	}
	return n
}
