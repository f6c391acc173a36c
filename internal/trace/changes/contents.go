package changes

import (
	"errors"

	"gm/formats/trace"
	"gm/internal/trace/overview"
)

// Contents is what one GPU's allocations came to in a stretch of a trace, by group.
type Contents struct {
	Device     int32
	Level      trace.Level // whose allocations: the framework's or, where it has none, those of the driver
	HasStacks  bool
	Iterations int   // how many are in the stretch, 0 if none were found
	Peak       int64 // the most bytes that lived at a time
	End        int64 // bytes that live at the end
	Reserved   int64 // the most bytes that the framework's segments held; 0 if not known
	Leaks      []Leak

	text   func(code int32) string
	groups map[key]*group
}

// key is what the allocations of a group have in common.
type key struct {
	stack  int32
	size   int64 // bytes of each; 0 for what a pool of the driver holds
	stream int32 // 0 for the default stream, others numbered from 1 as they are first used
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
	atPeak sum   // when all that lived was at its peak
	peaks  int64 // of the contents, that atPeak has seen
	made   sum   // allocated in the stretch
	steady sum   // allocated in iterations
	kept   int64 // blocks that were made in the stretch and live
	growth growth
}

// Read reads the stretches of a trace that spans names by device, whose whole o sums up; nil is all of it, with a search for
// leaks. What is held in memory grows with the blocks that live at a time, and with the different stacks and sizes.
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
			f.whole(o.Rows, Iterations(o, d))
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

var errDone = errors.New("no stretch is left")

// Iterations returns the iterations of a device: those that the order of its requests shows or, where it shows none, the
// stretches between marks named step.
func Iterations(o *overview.Overview, d *overview.Device) []overview.Span {
	if len(d.Iterations) > 0 {
		return d.Iterations
	}
	var spans []overview.Span
	for i := 1; i < len(o.Steps); i++ {
		spans = append(spans, overview.Span{First: o.Steps[i-1].Row, End: o.Steps[i].Row})
	}
	return spans
}
