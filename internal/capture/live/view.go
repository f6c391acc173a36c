// Package live keeps the account of a running capture: what lives now, of whom, how much it was at most, and how fast it
// changes. The session of a capture feeds it while it takes in rows, and serves it on a socket in the session's folder.
package live

// View is what a capture knows at one moment. It is the answer of its socket, as JSON.
type View struct {
	PID       int       `json:"pid"`      // of gmtrace
	Command   []string  `json:"command"`  // that it runs
	Output    string    `json:"output"`   // pattern of the traces' names; "" if they go to no file
	StartNS   int64     `json:"start_ns"` // nanoseconds since the Unix epoch, as all times
	NowNS     int64     `json:"now_ns"`
	Processes []Process `json:"processes"` // that used CUDA: those that run, by rank and start, then the ended ones, the last first
	Omitted   int       `json:"omitted"`   // further ones that have ended
}

// Process is one traced process.
type Process struct {
	PID       int      `json:"pid"`
	Command   string   `json:"command"` // "" when it is not known
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
	Total     int64  `json:"total_bytes"`        // 0 unknown, as the two below, which NVML measured
	Used      int64  `json:"card_used_bytes"`    // by all processes
	Process   int64  `json:"process_used_bytes"` // by this one
	Framework *Level `json:"framework"`          // nil when nothing is known of a framework, and below of the driver
	Driver    *Level `json:"driver"`
}

// Level is the account of one level on one device.
type Level struct {
	Live         int64   `json:"live_bytes"` // at the driver's level: the device memory that it gave
	Peak         int64   `json:"peak_bytes"`
	Reserved     int64   `json:"reserved_bytes"` // by the framework's segments
	PeakReserved int64   `json:"peak_reserved_bytes"`
	Allocs       int64   `json:"allocs"`
	Rate         float64 `json:"allocs_per_second"` // over the last seconds that are known
	Refused      int64   `json:"ooms"`
	UntilNS      int64   `json:"until_ns"` // of the last row: a framework's come in batches
	Tags         []Group `json:"tags"`     // by kind and library, at the driver's level; as below those that hold most
	Streams      []Group `json:"streams"`  // at the driver's level of what is allocated in pools
	Stacks       []Group `json:"stacks"`
}

// Group is the memory that has something in common.
type Group struct {
	Name   string `json:"name"` // of a stack: all of it, folded
	Live   int64  `json:"live_bytes"`
	Peak   int64  `json:"peak_bytes"`
	Blocks int64  `json:"blocks"` // that live
	Allocs int64  `json:"allocs"`
	Beside bool   `json:"beside"` // no part of the device memory: on the host, that migrates, or in a pool
}
