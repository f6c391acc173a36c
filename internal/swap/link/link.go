// Package link is the way between GPUs and the memory of their host: how fast copies are, measured, and how long others will take.
package link

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Schema names the form of a Link as JSON, which ends in its version.
const Schema = "gm link 1"

// Link is what was measured. Copies go out of a GPU to pinned memory of the host, and in. As JSON it is what gmswap bandwidth writes.
type Link struct {
	Schema string `json:"schema"`
	Device string `json:"device"`           // the product's name, such as NVIDIA H200
	Driver string `json:"driver,omitempty"` // its version, such as 580.159.03
	GPUs   []GPU  `json:"gpus"`             // those that were measured, in the order of their ordinals
}

// GPU is what was measured of one of them.
type GPU struct {
	Ordinal  int    `json:"ordinal"`
	NUMANode int    `json:"numa_node"`          // that the GPU is on, and the host's memory came from; -1 where that is not known
	Alone    []Rate `json:"alone"`              // when the others copied nothing, by size
	Together []Rate `json:"together,omitempty"` // when all of them copied the same at once, for the same sizes

	TouchNS    int64 `json:"touch_ns_per_gib"`    // for the first touch of memory of the host, by several threads
	RegisterNS int64 `json:"register_ns_per_gib"` // to pin it then

	// MemorySlowdown is how many times as long copies within the GPU take while it copies out and in: what the link takes of the
	// bandwidth of its memory.
	MemorySlowdown float64 `json:"memory_slowdown"`
}

// Rate is how fast copies of one size follow each other, in one direction or in both at once.
type Rate struct {
	Bytes   int64 `json:"bytes"`
	Out     int64 `json:"out_bytes_per_s"`
	In      int64 `json:"in_bytes_per_s"`
	BothOut int64 `json:"both_out_bytes_per_s"`
	BothIn  int64 `json:"both_in_bytes_per_s"`
}

// Load is what else goes on while a copy runs.
type Load struct {
	Both bool // the other direction is as busy
	GPUs int  // that copy the same at once, this one included; 0 is 1
}

// way picks one of the figures of a Rate.
type way func(r *Rate) int64

// seconds returns the time of one copy.
func (r *Rate) seconds(w way) float64 { return float64(r.Bytes) / float64(w(r)) }

func outWay(r *Rate) int64     { return r.Out }
func inWay(r *Rate) int64      { return r.In }
func bothOutWay(r *Rate) int64 { return r.BothOut }
func bothInWay(r *Rate) int64  { return r.BothIn }

// OutTime returns how long a copy of this size in bytes to the host takes when nothing else is copied.
func (l *Link) OutTime(bytes int64) time.Duration { return l.Under(Load{}).OutTime(bytes) }

// InTime returns how long a copy of this size in bytes from the host takes when nothing else is copied.
func (l *Link) InTime(bytes int64) time.Duration { return l.Under(Load{}).InTime(bytes) }

// Under returns the link as a copy finds it while something else goes on.
func (l *Link) Under(load Load) Loaded { return Loaded{l, load} }

// Loaded is a link with something else going on.
type Loaded struct {
	link *Link
	load Load
}

// OutTime returns how long a copy of this size in bytes to the host takes.
func (l Loaded) OutTime(bytes int64) time.Duration {
	if l.load.Both {
		return l.slowest(bytes, bothOutWay)
	}
	return l.slowest(bytes, outWay)
}

// InTime returns how long a copy of this size in bytes from the host takes.
func (l Loaded) InTime(bytes int64) time.Duration {
	if l.load.Both {
		return l.slowest(bytes, bothInWay)
	}
	return l.slowest(bytes, inWay)
}

// slowest returns the time of the GPU that takes longest, which others of a job wait for.
func (l Loaded) slowest(bytes int64, w way) time.Duration {
	if bytes <= 0 {
		return 0
	}
	var longest float64
	for i := range l.link.GPUs {
		longest = max(longest, l.seconds(&l.link.GPUs[i], bytes, w))
	}
	return time.Duration(min(longest*float64(time.Second), math.MaxInt64-1<<10)) // the next lower number in floating point
}

// seconds returns the time on one GPU. Between one GPU and all of them it grows evenly with their number; more than were measured are
// taken for as many as were.
func (l Loaded) seconds(g *GPU, bytes int64, w way) float64 {
	alone := seconds(g.Alone, bytes, w)
	others, most := min(l.load.GPUs, len(l.link.GPUs))-1, len(l.link.GPUs)-1
	if others < 1 || len(g.Together) == 0 {
		return alone
	}
	return alone + (seconds(g.Together, bytes, w)-alone)*float64(others)/float64(most)
}

// seconds returns the time of a copy by the times of the sizes that were measured: on the line between its neighbours, which for sizes
// below all others meets no bytes at the fixed cost of a copy, or on the last one's bandwidth.
func seconds(rates []Rate, bytes int64, w way) float64 {
	i, _ := slices.BinarySearchFunc(rates, bytes, func(r Rate, bytes int64) int { return cmp.Compare(r.Bytes, bytes) })
	i = min(max(i, 1), len(rates)-1)
	r := &rates[i]
	if i == 0 || bytes > r.Bytes {
		return float64(bytes) / float64(w(r))
	}
	before := &rates[i-1]
	slope := (r.seconds(w) - before.seconds(w)) / float64(r.Bytes-before.Bytes)
	return max(before.seconds(w)+slope*float64(bytes-before.Bytes), 0)
}
