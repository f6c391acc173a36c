package layout

import (
	"fmt"
	"strings"

	"gm/formats/plan"
	"gm/internal/dsa"
)

// Streams is whether tensors of different streams may share memory.
type Streams int

const (
	// Shared memory passes from stream to stream: an allocator that follows the plan makes a stream wait for the event at
	// which the previous stream is done.
	Shared Streams = iota
	// Separate streams have arenas of their own.
	Separate
)

// Arena is an address range and its layout.
type Arena struct {
	Name       string
	Device     int32
	Tensors    int
	Peak       int64 // bytes
	LowerBound int64 // bytes
	Method     string

	members []int32 // of the plan's tensors
	problem dsa.Problem
}

// part is the relation of a tensor to the planned window.
type part int8

const (
	wholeTrace part = iota
	resident        // allocated before the window, or live after it
	inside          // allocated and freed in it, or freed in its repetition
)

// arenaKey identifies the arena of a tensor.
type arenaKey struct {
	device int32
	stream int64 // 0 when streams share
	pool   int32 // a private pool shares its memory with no other: a CUDA graph replays into it at any time
	part   part
}

// name returns the arena's name, such as d0, d0.s7, d0.p(0,1) or d0.iteration.
func (k arenaKey) name(o *Options, pools func(int32) string) string {
	var name strings.Builder
	fmt.Fprintf(&name, "d%d", k.device)
	if k.pool != 0 {
		fmt.Fprintf(&name, ".p%s", pools(k.pool))
	}
	if o.Streams == Separate {
		fmt.Fprintf(&name, ".s%d", k.stream)
	}
	switch k.part {
	case resident:
		name.WriteString(".resident")
	case inside:
		name.WriteString(plan.Repeated)
	}
	return name.String()
}

// key returns the arena of tensor i, which must live in the window.
func (o *Options) key(t *Tensors, i int) arenaKey {
	k := arenaKey{device: t.Device[i], pool: t.Pool[i]}
	if o.Streams == Separate {
		k.stream = t.Stream[i]
	}
	if w := o.Window; w != nil {
		k.part = resident
		if w.starts(t, i) && t.Free[i] < w.Hi {
			k.part = inside
		}
	}
	return k
}

// starts reports whether tensor i is allocated in the window.
func (w *Window) starts(t *Tensors, i int) bool { return w.Lo <= t.Alloc[i] && t.Alloc[i] < w.Hi }

// holds reports whether tensor i lives at any time of the window. A nil window holds all tensors.
func (w *Window) holds(t *Tensors, i int) bool {
	return w == nil || t.Alloc[i] < w.Hi && t.Free[i] > w.Lo
}
