package overview

import (
	"errors"
	"strconv"

	"gm/formats/trace"
)

// Top is what lives on one GPU at the moments of most interest: at the peak, and when the last request failed.
type Top struct {
	Device  int32     `json:"device"`
	Level   string    `json:"level"` // whose allocations: the framework's or, where it has none, those of the driver
	Moments []*Moment `json:"moments"`
}

// Moment is what lives at a row. Of the groups only those of most bytes are listed.
type Moment struct {
	What      string  `json:"what"` // "peak" or "oom"
	Row       int64   `json:"row"`
	TimeNS    int64   `json:"time_ns"`
	Live      int64   `json:"live_bytes"`
	Blocks    int64   `json:"live_blocks"`
	Reserved  int64   `json:"reserved_bytes"` // by the framework's segments; 0 if unknown
	Failed    *Failed `json:"failed"`         // nil at the peak
	HasStacks bool    `json:"has_stacks"`
	Stacks    []Group `json:"stacks"`            // by folded stack
	Requests  []Group `json:"sizes_and_streams"` // by requested bytes and stream
	Streams   []Group `json:"streams"`
	Kinds     []Group `json:"kinds"` // of the driver's level, by kind and library
	Classes   []Group `json:"size_classes"`
}

// Failed is the request that failed.
type Failed struct {
	Size  int64  `json:"requested_bytes"`
	Free  int64  `json:"device_free_bytes"`
	By    string `json:"by"` // the tag of the row if it is the driver's that refused, else ""
	Stack string `json:"stack"`
}

var errDone = errors.New("no moment is left")

// ReadTop reads the trace that o sums up once more, until the last moment. Lists of groups are cut to n. What is held in memory
// grows with the blocks that live at a time.
func ReadTop(r *trace.Reader, o *Overview, n int) ([]*Top, error) {
	var all []*Top
	left := 0
	byDevice := map[int32]*holder{}
	for _, d := range o.Devices {
		h := newHolder(d)
		if len(h.top.Moments) == 0 {
			continue
		}
		left += len(h.top.Moments)
		byDevice[d.Ordinal] = h
		all = append(all, h.top)
	}
	text := r.Strings().Text
	err := trace.Each(r, func(row int64, e *trace.Event) error {
		if left == 0 {
			return errDone
		}
		h := byDevice[e.Device]
		if h == nil {
			return nil
		}
		if e.Level == h.level {
			h.add(e, text(e.Tag))
		}
		for _, m := range h.top.Moments {
			if m.Row == row {
				h.describe(m, e, text, n)
				left--
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, errDone) {
		return nil, err
	}
	return all, nil
}

// moments returns what to look at on a device, and whose allocations.
func (d *Device) moments() (trace.Level, []*Moment) {
	var all []*Moment
	level, peak, row := trace.LevelFramework, d.PeakLive, d.PeakRow
	if d.Allocs == 0 && d.Driver != nil {
		level, peak, row = trace.LevelDriver, d.Driver.Peak, d.Driver.PeakRow
	}
	if peak > 0 {
		all = append(all, &Moment{What: "peak", Row: row})
	}
	if n := len(d.OOMs); n > 0 {
		all = append(all, &Moment{What: "oom", Row: d.OOMs[n-1].Row})
	} else if d.Driver != nil && len(d.Driver.Refusals) > 0 {
		all = append(all, &Moment{What: "oom", Row: d.Driver.Refusals[len(d.Driver.Refusals)-1].Row})
	}
	return level, all
}

// holder follows what lives on a device.
type holder struct {
	top      *Top
	level    trace.Level
	live     map[int64]block // by id
	pools    map[int32]int64 // bytes, by the code of the tag: what the driver's pools hold
	reserved int64
}

type block struct {
	size   int64
	stream int64
	stack  int32
	tag    int32
}

func newHolder(d *Device) *holder {
	level, moments := d.moments()
	return &holder{
		top: &Top{Device: d.Ordinal, Level: level.String(), Moments: moments}, level: level,
		live: map[int64]block{}, pools: map[int32]int64{},
	}
}

// add follows one row of the device and the level.
func (h *holder) add(e *trace.Event, tag string) {
	switch e.Op {
	case trace.OpAlloc:
		if kind, _ := trace.ParseDriverTag(tag); h.level == trace.LevelFramework || kind.Obtained() {
			h.live[e.ID] = block{e.Size, e.Stream, e.Stack, e.Tag}
		}
	case trace.OpFree, trace.OpFreeCompleted:
		delete(h.live, e.ID)
	case trace.OpSegmentAlloc:
		h.reserve(e, e.Size)
	case trace.OpSegmentFree:
		h.reserve(e, -e.Size)
	case trace.OpSegmentMap:
		h.reserved += e.Size
	case trace.OpSegmentUnmap:
		h.reserved -= e.Size
	}
}

func (h *holder) reserve(e *trace.Event, bytes int64) {
	h.reserved += bytes
	if h.level == trace.LevelDriver {
		h.pools[e.Tag] += bytes
	}
}

// describe fills in a moment, whose row has just been followed.
func (h *holder) describe(m *Moment, e *trace.Event, text func(code int32) string, n int) {
	m.TimeNS = e.TimeNS
	if m.What == "oom" {
		m.Failed = &Failed{Size: e.Size, Free: int64(e.Addr), Stack: text(e.Stack)}
		if e.Level == trace.LevelDriver {
			m.Failed.By = text(e.Tag)
		}
	}
	if h.level == trace.LevelFramework {
		m.Reserved = h.reserved
	}
	stacks, streams, kinds := grouping[int32]{}, grouping[int64]{}, grouping[int32]{}
	requests, classes := grouping[request]{}, grouping[int]{}
	add := func(b block) {
		m.Live += b.size
		m.Blocks++
		m.HasStacks = m.HasStacks || b.stack != 0
		stacks.add(b.stack, b.size)
		streams.add(b.stream, b.size)
		kinds.add(b.tag, b.size)
		requests.add(request{b.size, b.stream}, b.size)
		classes.add(class(b.size), b.size)
	}
	for _, b := range h.live {
		add(b)
	}
	for tag, bytes := range h.pools {
		if bytes > 0 {
			add(block{size: bytes, tag: tag})
		}
	}
	m.Stacks = stacks.list(m.Live, n, text)
	m.Requests = requests.list(m.Live, n, request.String)
	m.Streams = streams.list(m.Live, n, func(handle int64) string { return strconv.FormatInt(handle, 10) })
	m.Classes = classes.list(m.Live, len(classes), className)
	m.Kinds = []Group{}
	if h.level == trace.LevelDriver {
		m.Kinds = kinds.list(m.Live, n, text)
	}
}
