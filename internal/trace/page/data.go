package page

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"gm/formats/trace"
	"gm/internal/report"
	"gm/internal/trace/text"
)

// partData is what the script knows of a part beside its packed numbers. Their order is that of [part.pack].
type partData struct {
	Name     string      `json:"name"`
	Tick     int64       `json:"tick"`    // nanoseconds: the unit of all packed times
	StartNS  int64       `json:"startNS"` // the time of day
	EndNS    int64       `json:"endNS"`   // from the start on
	Rows     int64       `json:"rows"`    // of the trace
	Driver   bool        `json:"driver"`  // these are the driver's allocations
	Capacity int64       `json:"capacity"`
	Merged   int         `json:"merged"`
	Labels   []labelData `json:"labels"` // in the order in which they are stacked
	Stacks   []stackData `json:"stacks"`
	Frames   []string    `json:"frames"`
	Plumbing []int32     `json:"plumbing"` // numbers of frames that a flame graph leaves out
	Streams  []string    `json:"streams"`
	Pools    []string    `json:"pools"`
	OOMs     []oomData   `json:"ooms"`
	Marks    []mark      `json:"marks"`
	Sections []section   `json:"sections"`
}

// stackData is a stack: a short name that no other stack of the part has, that of its group if two recordings are compared, and its frames
// as numbers, innermost first.
type stackData struct {
	Short  string  `json:"short"`
	Group  string  `json:"group,omitempty"`
	Frames []int32 `json:"frames"`
}

type oomData struct {
	oom
	Stack string `json:"stack"` // shortened
}

// stackName is the most characters of the short name of a stack, which is that of gmtrace show.
const stackName = text.StackWidth

// pack packs a part: its [partData] as JSON; the times and the rows of the events; of each tensor its birth, its lifetime in events or 0, its kind and
// its place in the list of addresses, from 1; of each kind the size, the stack, the label, the stream, the pool and the count; the
// addresses; of each segment the first position, the lifetime or 0, the address, the size and the stream.
func (p *part) pack() (string, error) {
	var out Packer
	meta, err := json.Marshal(p.data())
	if err != nil {
		return "", fmt.Errorf("pack %s: %w", p.name, err)
	}
	out.Bytes(meta)
	times := make([]int64, len(p.events))
	for i, e := range p.events {
		times[i] = (e.timeNS - p.startNS) / p.tick()
	}
	out.Numbers(times)
	out.Numbers(each(p.events, func(e *event) int64 { return e.row }))
	addresses := p.addresses()
	of := func(get func(t *tensor) int64) []int64 { return each(p.tensors, get) }
	out.Numbers(of(func(t *tensor) int64 { return int64(t.born) }))
	out.Counts(of(func(t *tensor) int64 { return lifetime(t.born, t.died) }))
	out.Counts(of(func(t *tensor) int64 { return int64(t.kind) }))
	out.Counts(of(func(t *tensor) int64 {
		at, known := slices.BinarySearch(addresses, int64(t.addr))
		if !known || t.addr == 0 {
			return 0
		}
		return int64(at) + 1
	}))
	out.Numbers(each(p.kinds, func(k *kind) int64 { return k.size }))
	for _, get := range []func(k *kind) int32{
		func(k *kind) int32 { return k.stack }, func(k *kind) int32 { return k.label }, func(k *kind) int32 { return k.stream },
		func(k *kind) int32 { return k.pool }, func(k *kind) int32 { return k.count },
	} {
		out.Counts(each(p.kinds, func(k *kind) int64 { return int64(get(k)) }))
	}
	out.Numbers(addresses)
	out.Numbers(each(p.segments, func(s *segment) int64 { return int64(s.from) }))
	out.Counts(each(p.segments, func(s *segment) int64 { return lifetime(s.from, s.to) }))
	out.Numbers(each(p.segments, func(s *segment) int64 { return int64(s.low) }))
	out.Counts(each(p.segments, func(s *segment) int64 { return int64(s.high - s.low) }))
	out.Counts(each(p.segments, func(s *segment) int64 { return int64(s.stream) }))
	return out.Text()
}

func each[T any](list []T, get func(*T) int64) []int64 {
	all := make([]int64, len(list))
	for i := range list {
		all[i] = get(&list[i])
	}
	return all
}

func lifetime(from, to int32) int64 {
	if to == never {
		return 0
	}
	return int64(to - from)
}

// tick returns the unit in which times are packed: nanoseconds, or microseconds for a recording of more than ten seconds.
func (p *part) tick() int64 {
	if p.endNS-p.startNS > 10e9 {
		return 1000
	}
	return 1
}

// addresses returns all addresses of tensors, ascending.
func (p *part) addresses() []int64 {
	all := make([]int64, 0, len(p.tensors))
	for i := range p.tensors {
		if addr := p.tensors[i].addr; addr != 0 {
			all = append(all, int64(addr))
		}
	}
	slices.Sort(all)
	return slices.Clip(slices.Compact(all))
}

// data describes the part, with all text made printable.
func (p *part) data() *partData {
	d := &partData{
		Name: p.name, Tick: p.tick(), StartNS: p.startNS, EndNS: p.endNS - p.startNS, Rows: p.rows, Driver: p.level == trace.LevelDriver, Capacity: p.capacity, Merged: p.merged,
		Streams: []string{}, Pools: []string{}, OOMs: []oomData{}, Marks: []mark{}, Sections: append([]section{}, p.sections...), Labels: labelsOf(p.labels, p.colors), Plumbing: []int32{},
	}
	d.Stacks, d.Frames = p.stackData()
	for i, frame := range d.Frames {
		if report.Plumbing(frame) {
			d.Plumbing = append(d.Plumbing, int32(i))
		}
	}
	for _, s := range p.streams {
		d.Streams = append(d.Streams, fmt.Sprint(s))
	}
	for _, pool := range p.pools {
		d.Pools = append(d.Pools, report.Printable(pool))
	}
	for _, o := range p.ooms {
		d.OOMs = append(d.OOMs, oomData{o, report.Printable(report.Stack(o.Stack, stackName))})
	}
	for _, m := range p.marks {
		m.Text = report.Printable(m.Text)
		d.Marks = append(d.Marks, m)
	}
	return d
}

// stackData returns the stacks, and the frames that their numbers stand for.
func (p *part) stackData() (all []stackData, texts []string) {
	all, texts = []stackData{}, []string{}
	names := p.stackNames()
	numbers := map[string]int32{}
	for _, folded := range p.stacks {
		s := stackData{Short: report.Printable(names.Of(folded)), Group: report.Printable(p.groups[folded]), Frames: []int32{}}
		if folded != "" {
			frames := strings.Split(folded, ";")
			slices.Reverse(frames)
			for _, frame := range frames {
				frame = report.Printable(frame)
				s.Frames = append(s.Frames, numberOf(numbers, frame, &texts, frame))
			}
		}
		all = append(all, s)
	}
	return all, texts
}

// stackNames names the stacks of the part, each by a text of its own.
func (p *part) stackNames() report.StackNames { return report.NewStackNames(p.stacks, stackName) }
