package ranks

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"gm/formats/column"
	"gm/formats/trace"
	"gm/internal/trace/overview"
)

// Table is what the traces of a job say, a row for each rank and GPU.
type Table struct {
	World    int64    `json:"world_size"`
	Ranks    []*Rank  `json:"ranks"`
	Spread   Spread   `json:"peaks"`
	Parts    []Parts  `json:"parts"`             // what the job is split into, where that is known
	Alike    int      `json:"request_sequences"` // that differ: 1 if all ranks ask for the same
	First    int      `json:"-"`                 // the row that needs the most memory, and so fails first when there is less
	Outliers []string `json:"outliers"`
	Missing  []int64  `json:"missing_ranks"`
	Left     []Left   `json:"left_out"`
}

// Rank is one GPU of one rank. Sizes are in bytes.
type Rank struct {
	Rank        int64  `json:"rank"` // -1 if unknown
	File        string `json:"file"`
	Host        string `json:"host"`
	PID         int64  `json:"pid"`
	Device      int32  `json:"device"`
	Card        string `json:"card"`
	Capacity    int64  `json:"capacity_bytes"`
	Peak        int64  `json:"peak_live_bytes"`
	Reserved    int64  `json:"peak_reserved_bytes"` // 0 if not recorded
	Waste       int64  `json:"waste_bytes"`         // reserved beyond the peak; 0 if reserved is not recorded
	Held        int64  `json:"driver_bytes"`        // that the process had from the driver at its peak; 0 if not recorded
	NCCL        int64  `json:"nccl_bytes"`          // of these, what NCCL had
	Iterations  int    `json:"iterations"`
	IterationNS int64  `json:"iteration_ns"` // the median
	OOMs        int    `json:"ooms"`
	StartNS     int64  `json:"start_ns"`
	EndNS       int64  `json:"end_ns"`
	Sequence    int    `json:"request_sequence"` // ranks that ask for the same in the same order have the same number, from 0
	Clock       bool   `json:"clock_differs"`    // the trace lies wholly outside of the time of most others

	TimeNS []int64 `json:"-"` // the curve of live bytes: since the start of the trace
	Bytes  []int64 `json:"-"`

	requests uint64
	key      string // of its trace
}

// Need is the memory below which the rank fails: what it had from the driver, or what its allocator reserved, or what was live.
func (r *Rank) Need() int64 { return max(r.Held, r.Reserved, r.Peak) }

// Spread is how peaks differ between ranks.
type Spread struct {
	Least     int64   `json:"least_bytes"`
	Median    int64   `json:"median_bytes"`
	Most      int64   `json:"most_bytes"`
	Imbalance float64 `json:"imbalance"` // the most above the mean, as a share of the mean
}

// points is how many points the curve of a rank has.
const points = 256

// Read reads all traces of a job, as many at once as there are cores. It calls done after each. Traces that cannot be read are
// left out.
func (j *Job) Read(ctx context.Context, done func()) (*Table, error) {
	rows, shared := make([][]*Rank, len(j.Members)), &overview.Shared{}
	err := j.Each(ctx, runtime.GOMAXPROCS(0), done, func(m *Member, source *column.Source) error {
		o, err := trace.ReadSource(source, shared.Read)
		if err != nil {
			return err
		}
		if len(o.Devices) == 0 && m.Rank >= 0 { // a launcher has no rank
			return errors.New("holds no request for memory")
		}
		for _, d := range o.Devices {
			rows[m.Index] = append(rows[m.Index], rankOf(m, o, d))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(rows, func(of []*Rank) bool { return len(of) > 0 }) {
		return nil, fmt.Errorf("%s: no trace holds a request for memory", j.Folder)
	}
	t := &Table{World: j.World, Missing: j.Missing, Left: j.Left, Outliers: []string{}}
	t.Ranks = slices.Concat(rows...)
	slices.SortStableFunc(t.Ranks, func(a, b *Rank) int { return compareRanks(a.Rank, b.Rank) })
	t.finish()
	t.Parts = j.parts(t.Ranks)
	j.Clocks = t.clocks()
	return t, nil
}

func compareRanks(a, b int64) int {
	switch {
	case uint64(a) < uint64(b): // -1 is the largest
		return -1
	case a == b:
		return 0
	}
	return 1
}

func rankOf(m *Member, o *overview.Overview, d *overview.Device) *Rank {
	_, peak, _ := d.Peak()
	r := &Rank{
		Rank: m.Rank, File: m.path, Host: m.Meta.Host, PID: m.Meta.PID, Device: d.Ordinal, Capacity: m.Meta.Capacity, Peak: peak, Reserved: d.PeakReserved,
		Iterations: len(d.Iterations), IterationNS: d.IterationNS, OOMs: len(d.OOMs), StartNS: o.StartNS, EndNS: o.EndNS, requests: d.Requests, key: m.Key(),
	}
	if int(d.Ordinal) < len(m.Meta.Devices) {
		r.Card = m.Meta.Devices[d.Ordinal]
	}
	if r.Reserved > 0 {
		r.Waste = max(r.Reserved-r.Peak, 0)
	}
	if d.Driver != nil {
		r.Held = d.Driver.Peak
		r.OOMs += len(d.Driver.Refusals)
		r.NCCL = d.Driver.AtPeak(overview.NCCL)
	}
	r.curve(o, d)
	return r
}

// curve keeps the curve of a device.
func (r *Rank) curve(o *overview.Overview, d *overview.Device) {
	bytes := d.Curve(o.StartNS, o.EndNS, points)
	if !d.Framework() && d.Driver != nil {
		bytes = d.Driver.Curve(o.StartNS, o.EndNS, points)
	}
	for i, b := range bytes {
		r.TimeNS = append(r.TimeNS, int64(float64(o.EndNS-o.StartNS)*float64(i)/points))
		r.Bytes = append(r.Bytes, int64(b))
	}
}

// finish compares the ranks.
func (t *Table) finish() {
	numbers := map[uint64]int{}
	sum := 0.0
	var peaks []int64
	for i, r := range t.Ranks {
		if _, ok := numbers[r.requests]; !ok {
			numbers[r.requests] = len(numbers)
		}
		r.Sequence = numbers[r.requests]
		peaks = append(peaks, r.Peak)
		sum += float64(r.Peak)
		if r.Need() > t.Ranks[t.First].Need() {
			t.First = i
		}
	}
	t.Alike = len(numbers)
	if len(peaks) == 0 {
		return
	}
	slices.Sort(peaks)
	n := len(peaks)
	t.Spread = Spread{Least: peaks[0], Median: peaks[n/2], Most: peaks[n-1]}
	if sum > 0 {
		t.Spread.Imbalance = float64(peaks[n-1])*float64(n)/sum - 1
	}
	t.outliers()
}

// Duration returns the median time of an iteration.
func (r *Rank) Duration() time.Duration { return time.Duration(r.IterationNS) }

// medians returns the median of values and of their distances from it.
func medians(values []float64) (median, spread float64) {
	sorted := slices.Sorted(slices.Values(values))
	median = sorted[len(sorted)/2]
	for i, v := range sorted {
		sorted[i] = math.Abs(v - median)
	}
	slices.Sort(sorted)
	return median, sorted[len(sorted)/2]
}
