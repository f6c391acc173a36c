// Package summary reads and writes summaries of jobs as Parquet: one row a job, rank and GPU. gmtrace summary collects them in a dataset,
// which DuckDB, Spark or pandas ask. docs/fleet.md documents the columns.
package summary

import "fmt"

// Summary is one row. Sizes are in bytes; 0 is unknown, except for parts of a sum.
type Summary struct {
	Job       string // tells runs apart
	Name      string // of what was run, the same for all runs of it
	Host      string
	Card      string // product name of the GPU
	Command   string
	Source    string // what the trace was made from
	Settings  string // of the allocator, in the syntax of PYTORCH_CUDA_ALLOC_CONF
	Helps     string // the settings that would have reserved least; "" if none would have saved one part in 100
	Stacks    string // that hold most at the peak: folded, each with its bytes behind it, one a line
	Rank      int64  // -1 if unknown
	WorldSize int64
	Device    int64
	PID       int64
	StartNS   int64 // since the Unix epoch
	Duration  int64 // nanoseconds
	Rows      int64 // of the trace

	Iterations  int64
	IterationNS int64 // the median
	OOMs        int64 // requests that failed

	Capacity   int64 // of the GPU
	Peak       int64 // the most live bytes
	Reserved   int64 // in the segments of the recorded allocator
	Driver     int64 // that the process had from the driver
	NCCL       int64 // of these, NCCL's
	Torch      int64 // what PyTorch's allocator reserves in a replay with the recorded settings, without expandable_segments
	Expandable int64 // with expandable_segments
	Stitch     int64 // what gmstitch reserves

	Tags [len(tagNames)]int64   // live at the peak, by [Tags]
	Lost [len(causeNames)]int64 // of Torch or, where the recorded settings say so, of Expandable: reserved and not requested, by [Causes]
}

var tagNames = [...]string{"parameters", "optimizer state", "gradients", "workspaces", "held", "activations", "temporaries", "other"}

var causeNames = [...]string{
	"rounding", "split tails", "pending record_stream", "private pools", "stranded by stream", "free segments", "unused growth",
	"small fragments", "large fragments",
}

// Tags returns the tags of Summary.Tags, in order. The last is that of all others.
func Tags() []string { return tagNames[:] }

// Causes returns the causes of Summary.Lost, in order.
func Causes() []string { return causeNames[:] }

// Key tells rows apart: a dataset has one row of each.
type Key struct {
	Job          string
	Rank, Device int64
	PID          int64
}

// Key returns the key of a row.
func (s *Summary) Key() Key { return Key{s.Job, s.Rank, s.Device, s.PID} }

// check returns an error for a row that breaks a rule.
func (s *Summary) check() error {
	if s.Job == "" {
		return fmt.Errorf("no job")
	}
	for _, n := range []int64{
		s.WorldSize, s.Device, s.PID, s.StartNS, s.Duration, s.Rows, s.Iterations, s.IterationNS, s.OOMs,
		s.Capacity, s.Peak, s.Reserved, s.Driver, s.NCCL, s.Torch, s.Expandable, s.Stitch,
	} {
		if n < 0 {
			return fmt.Errorf("job %s, rank %d: %d is negative", s.Job, s.Rank, n)
		}
	}
	return nil
}
