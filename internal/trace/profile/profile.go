// Package profile turns a trace into a profile for pprof: who holds the memory at a moment, and who allocated how much in total.
//
// Its sample types are those of Go's heap profiles: alloc_objects, alloc_space, inuse_objects and inuse_space, in bytes as requested.
// Samples have the labels tag, rule, certainty, device, stream and size, and the stack of the allocation.
package profile

import (
	"fmt"
	"strconv"

	"github.com/google/pprof/profile"

	"gm/formats/trace"
	"gm/internal/trace/overview"
	"gm/internal/trace/tags"
)

// The indexes of the values of a sample.
const (
	allocObjects = iota
	allocSpace
	inuseObjects
	inuseSpace
	values
)

// Read reads the rest of the trace whose overview is o. In use is what is live at a row or, if at is nil, at the peak of each device.
// Its memory grows with the live blocks and the distinct samples.
func Read(r *trace.Reader, o *overview.Overview, labels *tags.Tags, at *int64) (*profile.Profile, error) {
	b := newBuilder(r, o, labels, at)
	err := trace.Each(r, func(row int64, e *trace.Event) error {
		if b.add(row, e); len(b.samples) > maxSamples {
			return r.Wrap(fmt.Errorf("row %d: more than %d different stacks, streams and classes of sizes", row, maxSamples))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	p := b.profile(o)
	if err := p.CheckValid(); err != nil {
		return nil, fmt.Errorf("make a profile: %w", err)
	}
	return p, nil
}

// key is what the allocations of a sample have in common.
type key struct {
	device, stack int32
	stream        int64
	label         int // of the tags or, for rows of the driver's level, the code of the tag
	class         int // of sizes
	level         trace.Level
}

type sample struct {
	key    key
	values [values]int64
}

// maxSamples bounds the samples of a profile.
const maxSamples = 1 << 20

// live is a live allocation.
type live struct {
	sample int
	size   int64
}

// device is the moment to sample on one GPU.
type device struct {
	level trace.Level
	row   int64 // whose live blocks are in use
	live  map[int64]live
	pools map[key]int64 // bytes of the driver's pools
}

// builder sums up allocations.
type builder struct {
	text    func(code int32) string
	labels  *tags.Tags
	devices map[int32]*device
	due     map[int64][]*device // by row
	samples []sample
	index   map[key]int
}

func newBuilder(r *trace.Reader, o *overview.Overview, labels *tags.Tags, at *int64) *builder {
	b := &builder{
		text: r.Strings().Text, labels: labels, devices: map[int32]*device{}, due: map[int64][]*device{}, index: map[key]int{},
	}
	for _, d := range o.Devices {
		level, peak, row := d.Peak()
		if at != nil {
			row = *at
		}
		of := &device{level: level, row: row, live: map[int64]live{}, pools: map[key]int64{}}
		b.devices[d.Ordinal] = of
		if peak > 0 {
			b.due[row] = append(b.due[row], of)
		}
	}
	return b
}

// add processes a row.
func (b *builder) add(row int64, e *trace.Event) {
	if d := b.devices[e.Device]; d != nil && d.level == e.Level {
		switch e.Op {
		case trace.OpAlloc:
			b.alloc(d, e)
		case trace.OpFree, trace.OpFreeCompleted:
			delete(d.live, e.ID)
		case trace.OpSegmentAlloc:
			b.resize(d, e, e.Size)
		case trace.OpSegmentFree:
			b.resize(d, e, -e.Size)
		}
	}
	for _, d := range b.due[row] {
		b.use(d)
	}
}

func (b *builder) alloc(d *device, e *trace.Event) {
	k := b.key(e)
	if d.level == trace.LevelDriver {
		if kind, _ := trace.ParseDriverTag(b.text(e.Tag)); !kind.Obtained() {
			return
		}
	}
	n := b.sample(k)
	s := &b.samples[n]
	s.values[allocObjects]++
	s.values[allocSpace] += e.Size
	d.live[e.ID] = live{n, e.Size}
}

// resize processes a change of the size of a driver's pool.
func (b *builder) resize(d *device, e *trace.Event, bytes int64) {
	if d.level != trace.LevelDriver {
		return
	}
	k := b.key(e)
	k.stack, k.class = 0, 0
	d.pools[k] += bytes
	s := &b.samples[b.sample(k)]
	if bytes > 0 {
		s.values[allocObjects]++
		s.values[allocSpace] += bytes
	}
}

func (b *builder) key(e *trace.Event) key {
	k := key{device: e.Device, stack: e.Stack, stream: e.Stream, label: int(e.Tag), class: overview.SizeClass(e.Size), level: e.Level}
	if e.Level == trace.LevelFramework {
		k.label = b.labels.Index(e.ID)
	}
	return k
}

func (b *builder) sample(k key) int {
	n, ok := b.index[k]
	if !ok {
		n = len(b.samples)
		b.index[k] = n
		b.samples = append(b.samples, sample{key: k})
	}
	return n
}

// use records what is in use on a device.
func (b *builder) use(d *device) {
	for _, l := range d.live {
		b.samples[l.sample].values[inuseObjects]++
		b.samples[l.sample].values[inuseSpace] += l.size
	}
	for k, bytes := range d.pools {
		if bytes > 0 {
			b.samples[b.index[k]].values[inuseObjects]++
			b.samples[b.index[k]].values[inuseSpace] += bytes
		}
	}
}

// labelsOf returns the labels of a sample.
func (b *builder) labelsOf(k key) map[string][]string {
	all := map[string][]string{
		"device": {strconv.Itoa(int(k.device))}, "stream": {strconv.FormatInt(k.stream, 10)}, "size": {overview.ClassName(k.class)},
	}
	if k.level == trace.LevelDriver {
		all["tag"] = []string{b.text(int32(k.label))}
		return all
	}
	l := b.labels.Label(k.label)
	all["tag"], all["rule"], all["certainty"] = []string{l.Tag}, []string{l.Rule}, []string{string(l.Certainty)}
	return all
}

// profile returns the sums as a profile.
func (b *builder) profile(o *overview.Overview) *profile.Profile {
	p := &profile.Profile{
		SampleType: []*profile.ValueType{
			{Type: "alloc_objects", Unit: "count"}, {Type: "alloc_space", Unit: "bytes"},
			{Type: "inuse_objects", Unit: "count"}, {Type: "inuse_space", Unit: "bytes"},
		},
		DefaultSampleType: "inuse_space",
		PeriodType:        &profile.ValueType{Type: "space", Unit: "bytes"},
		Period:            1,
		TimeNanos:         o.StartNS,
		DurationNanos:     o.EndNS - o.StartNS,
	}
	if o.Meta.Source != "" {
		p.Comments = []string{o.Meta.Source}
	}
	places := newPlaces(p)
	for i := range b.samples {
		s := &b.samples[i]
		p.Sample = append(p.Sample, &profile.Sample{
			Location: places.stack(b.text(s.key.stack)), Value: s.values[:], Label: b.labelsOf(s.key),
		})
	}
	return p
}
