package importer

import (
	"encoding/json"
	"errors"
	"fmt"

	"gm/formats/trace"
)

// Span is what ran in a profile of torch.profiler: an operator, a function, a call of CUDA, an annotation or, on a GPU, a kernel.
type Span struct {
	Name, Category string
	TimeNS         int64 // since the Unix epoch
	LengthNS       int64
	GPU            bool
	Process        int64 // with GPU its ordinal
	Thread         int64 // with GPU the stream
	Args           json.RawMessage
}

// gpuCategories are the categories of events whose process is a GPU.
var gpuCategories = map[string]bool{"kernel": true, "gpu_memcpy": true, "gpu_memset": true, "gpu_user_annotation": true}

// Spans calls each with what ran, in the order of the file. The input must be a profile, which is read to its end.
func (i *Input) Spans(each func(Span) error) error {
	if i.Format != Kineto {
		return i.wrap(errors.New("no profile of torch.profiler"))
	}
	k := &kineto{}
	k.take = func(e *kinetoEvent) error {
		if e.Phase != "X" {
			return nil
		}
		begin, err := nanoseconds(e.Time)
		if err != nil {
			return fmt.Errorf("ts: %w", err)
		}
		length, err := nanoseconds(e.Duration)
		if err != nil {
			return fmt.Errorf("dur: %w", err)
		}
		if k.base < 0 || k.base > trace.MaxTime || k.base+begin > trace.MaxTime {
			return fmt.Errorf("time %d ns after %d ns is out of range", begin, k.base)
		}
		s := Span{Name: e.Name, Category: e.Category, TimeNS: k.base + begin, LengthNS: length, GPU: gpuCategories[e.Category], Args: e.Args}
		process, processErr := parseInt(string(e.Process))
		thread, threadErr := parseInt(string(e.Thread))
		if processErr != nil || threadErr != nil {
			return nil // of no process: the profiler's own
		}
		s.Process, s.Thread = process, thread
		return each(s)
	}
	if err := k.read(i.src); err != nil {
		return i.wrap(fmt.Errorf("profile: %w", err))
	}
	return nil
}
