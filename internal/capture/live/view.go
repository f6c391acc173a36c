// Package live keeps the account of a running capture: which memory is live, who holds it, its peak, and the rate of allocations. The
// capture's session adds rows to it as they come, and serves the account on a socket in its folder.
package live

// View is the state of a capture at one moment. Its socket answers with it, as JSON.
type View struct {
	PID       int       `json:"pid"`      // of gmtrace
	Command   []string  `json:"command"`  // that it runs
	Output    string    `json:"output"`   // pattern of the traces' names; "" if they go to no file
	StartNS   int64     `json:"start_ns"` // nanoseconds since the Unix epoch, as all times
	NowNS     int64     `json:"now_ns"`
	Processes []Process `json:"processes"` // that used CUDA: running ones by rank and start, then ended ones, the latest first
	Omitted   int       `json:"omitted"`   // further ones that have ended
}

// Process is one traced process.
type Process struct {
	PID       int      `json:"pid"`
	Command   string   `json:"command"` // "" if it is not known
	Rank      int      `json:"rank"`    // of WorldSize processes; -1 unknown
	WorldSize int      `json:"world_size"`
	StartNS   int64    `json:"start_ns"` // when it first touched CUDA
	Ended     bool     `json:"ended"`
	Steps     int64    `json:"steps"`   // marks so far
	History   string   `json:"history"` // of PyTorch: "on", why there is none, "" in a process without PyTorch
	Waits     uint64   `json:"waits"`   // times that a thread waited for gmtrace
	WaitedNS  uint64   `json:"waited_ns"`
	Lost      uint64   `json:"lost"`   // records
	Output    string   `json:"output"` // file that its trace will go to; "" for none
	Devices   []Device `json:"devices"`
}

// Device is a GPU, as one process uses it.
type Device struct {
	Ordinal   int32  `json:"ordinal"`
	Name      string `json:"name"`
	Total     int64  `json:"total_bytes"`        // this and the next two: 0 if unknown; NVML measures those
	Used      int64  `json:"card_used_bytes"`    // by all processes
	Process   int64  `json:"process_used_bytes"` // by this one
	Framework *Level `json:"framework"`          // nil without a framework; Driver is nil without a record of the driver
	Driver    *Level `json:"driver"`
}

// Level is the account of one level on one device.
type Level struct {
	Live         int64   `json:"live_bytes"` // at the driver's level: device memory obtained from it
	Peak         int64   `json:"peak_bytes"`
	Reserved     int64   `json:"reserved_bytes"` // by the framework's segments
	PeakReserved int64   `json:"peak_reserved_bytes"`
	Allocs       int64   `json:"allocs"`
	Rate         float64 `json:"allocs_per_second"` // over the last whole seconds before UntilNS
	Refused      int64   `json:"ooms"`
	UntilNS      int64   `json:"until_ns"` // time of the last row; a framework's rows come in batches
	Tags         []Group `json:"tags"`     // by kind and library, at the driver's level; here and below, the largest groups
	Streams      []Group `json:"streams"`  // at the driver's level: of allocations in pools
	Stacks       []Group `json:"stacks"`
}

// Group is memory with a common tag, stream or stack.
type Group struct {
	Name   string `json:"name"` // for a stack: the whole folded stack
	Live   int64  `json:"live_bytes"`
	Peak   int64  `json:"peak_bytes"`
	Blocks int64  `json:"blocks"` // that live
	Allocs int64  `json:"allocs"`
	Beside bool   `json:"beside"` // not device memory of its own: on the host, managed, or in a pool
}
