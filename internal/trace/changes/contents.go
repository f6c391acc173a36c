package changes

import (
	"errors"

	"gm/formats/trace"
	"gm/internal/trace/overview"
)

// Contents sums up one GPU's allocations in a section of a trace, by group.
type Contents struct {
	Device     int32
	Level      trace.Level // whose allocations: the framework's or, if it has none, the driver's
	HasStacks  bool
	Iterations int   // number of iterations that allocations are counted in, 0 if there are none
	Peak       int64 // the most bytes that were live at a time
	End        int64 // bytes that are live at the end
	Reserved   int64 // the most bytes in the framework's segments; 0 if unknown
	Leaks      []Leak

	text   func(code int32) string
	groups map[key]*group
}

// key is what the allocations of a group have in common.
type key struct {
	stack  int32
	size   int64 // bytes of each; 0 for memory in a pool of the driver
	stream int32 // 0 for the default stream, others numbered from 1 in order of first use
	tag    int32 // of the driver's level: kind and library
	early  bool  // they are older than the recording
}

// sum is a number of allocations.
type sum struct{ bytes, blocks int64 }

func (s *sum) add(bytes, blocks int64) { s.bytes, s.blocks = s.bytes+bytes, s.blocks+blocks }

// group is the account of the allocations of one key.
type group struct {
	key
	now    sum   // live
	atPeak sum   // live at the peak of all groups
	peaks  int64 // number of peaks of the contents that atPeak includes
	made   sum   // allocated in the section
	steady sum   // allocated in iterations
	kept   int64 // live blocks that were allocated in the section
	growth growth
}

// Read reads a section of a trace on each device, as given by spans; o is the overview of the whole trace. If spans is nil, it reads
// the whole trace and searches for leaks. Its memory grows with the live blocks, and with the distinct stacks and sizes.
func Read(r *trace.Reader, o *overview.Overview, spans map[int32]overview.Span) ([]*Contents, error) {
	var followers []*follower
	byDevice := map[int32]*follower{}
	for _, d := range o.Devices {
		level := trace.LevelFramework
		if d.Allocs == 0 && d.Driver != nil {
			level = trace.LevelDriver
		}
		f := newFollower(d.Ordinal, level, r.Strings().Text)
		if spans == nil {
			f.whole(o.Rows, d)
		} else if span, ok := spans[d.Ordinal]; ok {
			f.part(span)
		} else {
			continue
		}
		byDevice[d.Ordinal] = f
		followers = append(followers, f)
	}
	left := len(followers)
	err := trace.Each(r, func(row int64, e *trace.Event) error {
		for _, f := range followers {
			if f.advance(row) {
				left--
			}
		}
		if left == 0 {
			return errDone
		}
		if f := byDevice[e.Device]; f != nil && e.Level == f.Level && row < f.span.End {
			if err := f.add(row, e); err != nil {
				return r.Wrap(err)
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, errDone) {
		return nil, err
	}
	var all []*Contents
	for _, f := range followers {
		f.advance(o.Rows)
		all = append(all, f.Contents)
	}
	return all, nil
}

var errDone = errors.New("no section is left")
