package exporter

import (
	"strconv"
	"strings"

	"gm/formats/trace"
	"gm/internal/torch/allocconf"
)

// snapshot exports a trace as a PyTorch snapshot.
type snapshot struct {
	*export
	*pickler
	survey *survey
	meta   trace.Meta
	words  func(code int32) string
	heaps  map[int32]*heap // at the end
	marks  []mark
	round  func(int64) int64
	frames map[string]uint32 // memos of frames
	stacks map[int32]uint32  // memos of lists of frames
	early  map[int32]int64   // result of older by the code of a tag
}

// mark is a named point in time.
type mark struct {
	timeUS int64
	device int32
	name   string
}

const nsPerUS = 1000

// pickle writes a snapshot: the state at the end, and the history that led to it. A replay of the history from the end to the
// beginning finds each block in a segment, and each freed block in place.
func (x *export) pickle() error {
	survey, err := x.survey()
	if err != nil {
		return err
	}
	s := newSnapshot(x, survey)
	if err := s.readEnd(); err != nil {
		return err
	}
	s.pickler = newPickler(x.out)
	s.dict(func() {
		s.segments()
		if err = s.traces(); err != nil {
			return
		}
		s.settings()
		s.annotations()
	})
	if err != nil {
		return err
	}
	x.warnLeft()
	return s.pickler.end()
}

func newSnapshot(x *export, survey *survey) *snapshot {
	conf, _ := allocconf.Recorded(survey.meta.AllocConf)
	return &snapshot{
		export: x, survey: survey, meta: survey.meta, round: conf.RoundSize,
		heaps: map[int32]*heap{}, frames: map[string]uint32{}, stacks: map[int32]uint32{}, early: map[int32]int64{},
	}
}

// readEnd reads the state at the end, and the marks.
func (s *snapshot) readEnd() error {
	for device, d := range s.survey.devices {
		s.heaps[device] = newHeap(d.segments && d.level == trace.LevelFramework, s.round)
	}
	err := s.each(func(r *trace.Reader, _ int64, e *trace.Event) error {
		s.words = r.Strings().Text
		if e.Op == trace.OpMark {
			s.marks = append(s.marks, mark{e.TimeNS / nsPerUS, e.Device, s.words(e.Tag)})
			return nil
		}
		if s.survey.exported(e) {
			s.follow(s.heaps[e.Device], r, e)
		}
		return nil
	})
	for _, h := range s.heaps {
		h.guess()
	}
	return err
}

// follow processes a row of a device and returns its block; nil if it has none or if the block is left out.
func (s *snapshot) follow(h *heap, r *trace.Reader, e *trace.Event) *block {
	h.begun = h.begun || s.older(e.Tag) < 0
	switch e.Op {
	case trace.OpAlloc:
		if e.Level == trace.LevelDriver && !onDevice(r, e) {
			return nil
		}
		whole := int64(0)
		if !h.begun {
			whole = s.older(e.Tag)
		}
		b, ok := h.alloc(e, whole)
		if !ok {
			return nil
		}
		return b
	case trace.OpFreeRequested:
		if b := h.live[e.ID]; b != nil {
			b.pending = true
			return b
		}
	case trace.OpFree, trace.OpFreeCompleted:
		if b := h.live[e.ID]; b != nil {
			h.done(e.ID)
			return b
		}
	default:
		if e.Op.Segment() && h.recorded {
			h.segment(e)
		}
	}
	return nil
}

// older returns the bytes of a block that is older than the recording, 0 if unknown; -1 if a block is not older.
func (s *snapshot) older(tag int32) int64 {
	whole, known := s.early[tag]
	if !known {
		var ok bool
		if whole, ok = trace.ParsePreexisting(s.words(tag)); !ok {
			whole = -1
		}
		s.early[tag] = whole
	}
	return whole
}

// annotations writes the marks.
func (s *snapshot) annotations() {
	list := s.listAt("external_annotations")
	for _, m := range s.marks {
		name, stage := m.name, ""
		for _, end := range []string{"START", "END"} {
			if before, ok := strings.CutSuffix(m.name, " "+end); ok {
				name, stage = before, end
			}
		}
		list.next()
		s.dict(func() {
			s.textAt("stage", stage)
			s.textAt("name", name)
			s.integerAt("device", int64(m.device))
			s.integerAt("time_us", m.timeUS)
		})
	}
	list.end()
}

// settings writes the settings of the allocator.
func (s *snapshot) settings() {
	conf, _ := allocconf.Recorded(s.meta.AllocConf)
	s.dictAt("allocator_settings", func() {
		s.textAt("PYTORCH_CUDA_ALLOC_CONF", s.meta.AllocConf)
		split := conf.MaxSplitSize
		if split == 0 {
			split = -1
		}
		s.integerAt("max_split_size", split)
		s.floatAt("garbage_collection_threshold", conf.GCThreshold)
		s.booleanAt("expandable_segments", conf.Expandable)
		s.integerAt("pinned_num_register_threads", 1)
		s.booleanAt("release_lock_on_cudamalloc", s.setting("release_lock_on_cudamalloc"))
		s.booleanAt("pinned_use_cuda_host_register", s.setting("pinned_use_cuda_host_register"))
		s.booleanAt("graph_capture_record_stream_reuse", s.setting("graph_capture_record_stream_reuse"))
		s.dictAt("roundup_power2_divisions", func() {
			for i, n := range conf.Divisions {
				s.integerAt(strconv.Itoa(1<<i), n)
			}
		})
	})
}

// setting reports whether a boolean setting is on.
func (s *snapshot) setting(name string) bool {
	for _, setting := range allocconf.Split(s.meta.AllocConf) {
		if key, value, _ := allocconf.Cut(setting); key == name && strings.EqualFold(value, "True") {
			return true
		}
	}
	return false
}
