package live

import (
	"gm/formats/column"
	"gm/formats/trace"
)

// Driver is the account of the memory that a process obtains from the CUDA driver. It is not safe for concurrent use.
type Driver struct {
	texts   *column.Strings // to which the codes of events refer
	tags    []tag           // by code
	devices map[int32]*driverDevice
	stacks  map[int64]int32 // groups of the blocks that have a stack, by their ids
}

type driverDevice struct {
	given   usage
	tags    groups // by tagKey
	streams groups // of what is in pools
	stacks  groups
	rate    rate
	refused int64
	until   int64
}

// tag is the meaning of a row's tag.
type tag struct {
	known    bool
	obtained bool // an alloc of the kind is device memory of its own
	pool     bool
}

// tagKey is the key of a group. A pool's allocations and its segments have the same tag; the key distinguishes them.
func tagKey(code int32, segments bool) int64 {
	key := int64(code) << 1
	if segments {
		key |= 1
	}
	return key
}

// NewDriver returns an empty account.
func NewDriver(texts *column.Strings) *Driver {
	return &Driver{texts: texts, devices: map[int32]*driverDevice{}, stacks: map[int64]int32{}}
}

// Add adds the next row of the driver's level.
func (d *Driver) Add(e *trace.Event) {
	on := d.devices[e.Device]
	if on == nil {
		on = &driverDevice{tags: newGroups(), streams: newGroups(), stacks: newGroups()}
		d.devices[e.Device] = on
	}
	on.until = e.TimeNS
	switch e.Op {
	case trace.OpAlloc:
		d.alloc(on, e)
	case trace.OpFree:
		d.free(on, e)
	case trace.OpSegmentAlloc:
		on.resize(e.Tag, e.Size)
	case trace.OpSegmentFree:
		on.resize(e.Tag, -e.Size)
	case trace.OpOOM:
		on.refused++
	}
}

// resize applies the growth or shrinkage of a pool.
func (d *driverDevice) resize(code int32, bytes int64) {
	d.given.change(bytes)
	d.tags.list[d.tags.of(tagKey(code, true))].change(bytes)
}

func (d *Driver) alloc(on *driverDevice, e *trace.Event) {
	on.rate.add(e.TimeNS)
	on.given.allocs++
	on.tags.list[on.tags.of(tagKey(e.Tag, false))].add(e.Size)
	t := d.tag(e.Tag)
	if t.obtained {
		on.given.change(e.Size)
	}
	if t.pool {
		on.streams.list[on.streams.of(e.Stream)].add(e.Size)
	}
	if e.Stack != 0 && (t.obtained || t.pool) {
		i := on.stacks.of(int64(e.Stack))
		on.stacks.list[i].add(e.Size)
		d.stacks[e.ID] = i
	}
}

// free applies a free. Its row has the tag, size and stream of the alloc.
func (d *Driver) free(on *driverDevice, e *trace.Event) {
	on.tags.list[on.tags.of(tagKey(e.Tag, false))].remove(e.Size)
	t := d.tag(e.Tag)
	if t.obtained {
		on.given.change(-e.Size)
	}
	if t.pool {
		on.streams.list[on.streams.of(e.Stream)].remove(e.Size)
	}
	if i, ok := d.stacks[e.ID]; ok {
		delete(d.stacks, e.ID)
		on.stacks.list[i].remove(e.Size)
	}
}

func (d *Driver) tag(code int32) tag {
	for int(code) >= len(d.tags) {
		d.tags = append(d.tags, tag{})
	}
	t := &d.tags[code]
	if !t.known {
		kind, _ := trace.ParseDriverTag(d.texts.Text(code))
		*t = tag{known: true, obtained: kind.Obtained(), pool: kind == trace.KindPool}
	}
	return *t
}

// Levels returns the state at a time, by device.
func (d *Driver) Levels(nowNS int64) map[int32]*Level {
	levels := map[int32]*Level{}
	for ordinal, on := range d.devices {
		levels[ordinal] = &Level{
			Live: on.given.live, Peak: on.given.peak, Allocs: on.given.allocs, Rate: on.rate.at(nowNS), Refused: on.refused,
			UntilNS: on.until, Tags: on.tags.largest(d.describeTag), Streams: on.streams.largest(describeStream),
			Stacks: on.stacks.largest(describeStack(d.texts)),
		}
	}
	return levels
}

// describeTag names memory as "memory by nccl".
func (d *Driver) describeTag(key int64, to *Group) {
	segments := key&1 != 0
	kind, by := trace.ParseDriverTag(d.texts.Text(int32(key >> 1)))
	to.Name = string(kind)
	if kind == trace.KindPool && !segments {
		to.Name = "in pools"
	}
	if by != "" {
		to.Name += " by " + by
	}
	to.Beside = !segments && !kind.Obtained()
}
