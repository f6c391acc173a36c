package trace

// Op says what happened at a row. The names are those of PyTorch's allocation history where it has one.
type Op int8

const (
	OpAlloc         Op = iota // a tensor or buffer of Size bytes was allocated at Addr
	OpFree                    // it was freed, and its memory is reusable at once
	OpFreeRequested           // its owner freed it; other streams may still use it
	OpFreeCompleted           // the last stream is done with it: its memory is reusable
	OpSegmentAlloc            // the allocator obtained Size bytes at Addr from the driver
	OpSegmentFree             // the allocator released them to the driver
	OpSegmentMap              // Size bytes at Addr were mapped into an expandable segment
	OpSegmentUnmap            // Size bytes at Addr were unmapped from it
	OpOOM                     // a request of Size bytes failed; Addr holds the bytes the device had free
	OpSnapshot                // a snapshot was taken
	OpMark                    // a point named by the user, in Tag
	OpSample                  // a measurement: Size bytes are used; Tag says whose
	numOps
)

// Level is the layer of software at which a row was recorded.
type Level int8

const (
	LevelFramework Level = iota // a framework's allocator: tensors, and the segments it holds them in
	LevelDriver                 // the CUDA driver
	numLevels
)

// Event is one row of a trace.
type Event struct {
	TimeNS int64 // nanoseconds since the Unix epoch; never less than in the row before
	Op     Op
	ID     int64  // number of the allocation, from 1, growing from alloc to alloc; 0 in rows that are about no allocation
	Size   int64  // bytes as requested, before rounding
	Addr   uint64 // device address, 0 when unknown
	Device int32  // ordinal of the GPU
	Stream int64  // CUDA stream handle, 0 for the default stream
	Pool   int32  // code of the private pool's name; 0, the empty string, is the default pool
	Thread int32  // thread id, 0 when unknown
	Level  Level
	Stack  int32 // code of the folded stack, "outermost;...;innermost"; 0 when unknown
	Tag    int32 // code of a free text

	Derived int32 // code of the text of a Derived; 0 if the tag is the program's, or there is none
}

// Batch holds consecutive rows, one slice per column, all of the same length.
type Batch struct {
	TimeNS []int64
	Op     []Op
	ID     []int64
	Size   []int64
	Addr   []uint64
	Device []int32
	Stream []int64
	Pool   []int32
	Thread []int32
	Level  []Level
	Stack  []int32
	Tag    []int32

	Derived []int32
}

// Len returns the number of rows.
func (b *Batch) Len() int { return len(b.TimeNS) }

// Row returns row i.
func (b *Batch) Row(i int) Event {
	return Event{
		TimeNS: b.TimeNS[i], Op: b.Op[i], ID: b.ID[i], Size: b.Size[i], Addr: b.Addr[i], Device: b.Device[i],
		Stream: b.Stream[i], Pool: b.Pool[i], Thread: b.Thread[i], Level: b.Level[i], Stack: b.Stack[i], Tag: b.Tag[i],
		Derived: b.Derived[i],
	}
}

// Append adds one row.
func (b *Batch) Append(e Event) {
	b.TimeNS = append(b.TimeNS, e.TimeNS)
	b.Op = append(b.Op, e.Op)
	b.ID = append(b.ID, e.ID)
	b.Size = append(b.Size, e.Size)
	b.Addr = append(b.Addr, e.Addr)
	b.Device = append(b.Device, e.Device)
	b.Stream = append(b.Stream, e.Stream)
	b.Pool = append(b.Pool, e.Pool)
	b.Thread = append(b.Thread, e.Thread)
	b.Level = append(b.Level, e.Level)
	b.Stack = append(b.Stack, e.Stack)
	b.Tag = append(b.Tag, e.Tag)
	b.Derived = append(b.Derived, e.Derived)
}

// Reset empties the batch and keeps its memory.
func (b *Batch) Reset() {
	b.TimeNS, b.Op, b.ID, b.Size, b.Addr = b.TimeNS[:0], b.Op[:0], b.ID[:0], b.Size[:0], b.Addr[:0]
	b.Device, b.Stream, b.Pool, b.Thread = b.Device[:0], b.Stream[:0], b.Pool[:0], b.Thread[:0]
	b.Level, b.Stack, b.Tag, b.Derived = b.Level[:0], b.Stack[:0], b.Tag[:0], b.Derived[:0]
}
