package overview

import (
	"cmp"
	"slices"

	"gm/formats/trace"
)

// Driver sums up the memory of one GPU that a process obtained from the CUDA driver.
type Driver struct {
	Peak           int64           `json:"peak_bytes"` // the most device memory that was obtained at a time
	PeakRow        int64           `json:"peak_row"`
	PeakNS         int64           `json:"peak_ns"`
	End            int64           `json:"end_bytes"`
	Accounts       []*Account      `json:"accounts"`
	Mappings       Mappings        `json:"mappings"`
	Refusals       []Refusal       `json:"ooms"`
	Reconciliation *Reconciliation `json:"reconciliation"` // nil if nothing was sampled
	Reservation    *Reservation    `json:"reservation"`    // nil if the framework's segments are not known

	now     int64 // device memory
	pytorch int64 // the part of it that PyTorch obtained, without code and contexts
	most    int64 // maximum of pytorch
	peaks   int64 // how often now reached a new peak
	curve   curve
	byTag   map[accountKey]*Account
	live    map[int64]obtained // by id
	odd     *odd
	samples samples
}

// Account is the memory of one kind that one library requested.
type Account struct {
	Kind    string `json:"kind"`
	By      string `json:"by"`      // "" if unknown
	Counted bool   `json:"counted"` // part of the device memory: of the kind "pool", segments count, allocations do not
	Allocs  int64  `json:"allocs"`
	AtPeak  int64  `json:"at_peak_bytes"` // live when the device memory was at its peak
	AtEnd   int64  `json:"at_end_bytes"`
	Most    int64  `json:"most_bytes"` // live at a time

	peaks int64 // number of the device's peaks that AtPeak includes
}

// Mappings sums up the mappings of physical memory.
type Mappings struct {
	Maps   int64 `json:"maps"`
	Unmaps int64 `json:"unmaps"`
	AtEnd  int64 `json:"at_end_bytes"`
	Most   int64 `json:"most_bytes"`
}

// Refusal is a request that the driver refused.
type Refusal struct {
	OOM
	Kind string `json:"kind"`
	By   string `json:"by"`
}

// Reservation compares the framework's account of its segments with the driver's. Each is taken at its own peak, since the rows of the
// two levels are not written at the same instant.
type Reservation struct {
	Framework int64 `json:"framework_bytes"` // the most bytes in its segments
	Driver    int64 `json:"driver_bytes"`    // the most bytes that PyTorch had obtained from the driver, without code and contexts
}

type accountKey struct {
	tag      string
	segments bool
}

type obtained struct {
	account *Account
	size    int64
}

// The names of libraries in tags of the driver's level.
const (
	PyTorch = "pytorch"
	NCCL    = "nccl"
)

func newDriver(rows int64, odd *odd) *Driver {
	return &Driver{
		Accounts: []*Account{}, Refusals: []Refusal{}, curve: newCurve(rows),
		byTag: map[accountKey]*Account{}, live: map[int64]obtained{}, odd: odd,
	}
}

// add processes one row of the driver's level.
func (d *Driver) add(e *trace.Event, row int64, tag string) {
	switch e.Op {
	case trace.OpAlloc:
		a := d.account(tag, false)
		a.Allocs++
		d.live[e.ID] = obtained{a, e.Size}
		d.move(a, e.Size, e, row)
	case trace.OpFree, trace.OpFreeCompleted:
		if o, ok := d.live[e.ID]; ok {
			delete(d.live, e.ID)
			d.move(o.account, -o.size, e, row)
		}
	case trace.OpSegmentAlloc:
		a := d.account(tag, true)
		a.Allocs++
		d.move(a, e.Size, e, row)
	case trace.OpSegmentFree:
		a := d.account(tag, true)
		left := a.AtEnd
		d.odd.takeBack(&left, e.Size, row, "segments")
		d.move(a, left-a.AtEnd, e, row)
	case trace.OpSegmentMap:
		d.Mappings.Maps++
		d.Mappings.AtEnd += e.Size
		d.Mappings.Most = max(d.Mappings.Most, d.Mappings.AtEnd)
	case trace.OpSegmentUnmap:
		d.Mappings.Unmaps++
		d.odd.takeBack(&d.Mappings.AtEnd, e.Size, row, "mappings")
	case trace.OpOOM:
		kind, by := trace.ParseDriverTag(tag)
		d.odd.listed++
		d.Refusals = append(d.Refusals, Refusal{OOM{row, e.Size, int64(e.Addr)}, string(kind), by})
	case trace.OpSample:
		d.samples.add(e, row, trace.Kind(tag), d.now)
	}
	d.curve.add(row, e.TimeNS, d.now)
}

func (d *Driver) account(tag string, segments bool) *Account {
	key := accountKey{tag, segments}
	a := d.byTag[key]
	if a == nil {
		kind, by := trace.ParseDriverTag(tag)
		a = &Account{Kind: string(kind), By: by, Counted: segments || kind.Obtained()}
		d.byTag[key] = a
		d.Accounts = append(d.Accounts, a)
	}
	return a
}

// move adds bytes to an account, or subtracts them.
func (d *Driver) move(a *Account, bytes int64, e *trace.Event, row int64) {
	a.settle(d.peaks)
	a.AtEnd += bytes
	a.Most = max(a.Most, a.AtEnd)
	if !a.Counted {
		return
	}
	if a.By == PyTorch && a.Kind != string(trace.KindModule) && a.Kind != string(trace.KindContext) {
		d.pytorch += bytes
		d.most = max(d.most, d.pytorch)
	}
	if d.now += bytes; d.now > d.Peak {
		d.Peak, d.PeakRow, d.PeakNS = d.now, row, e.TimeNS
		d.peaks++
	}
}

// settle updates AtPeak if there were new peaks; peaks counts all so far. The account has not changed since the last one.
func (a *Account) settle(peaks int64) {
	if a.peaks < peaks {
		a.AtPeak, a.peaks = a.AtEnd, peaks
	}
}

// finish closes the accounts; reserved is the most bytes in the framework's segments, 0 if unknown.
func (d *Driver) finish(reserved int64) {
	d.End = d.now
	for _, a := range d.Accounts {
		a.settle(d.peaks)
	}
	slices.SortFunc(d.Accounts, func(a, b *Account) int {
		if a.Counted != b.Counted {
			if a.Counted {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(b.AtPeak, a.AtPeak), cmp.Compare(b.Most, a.Most), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.By, b.By))
	})
	d.Reconciliation = d.samples.reconcile()
	if reserved > 0 && d.most > 0 {
		d.Reservation = &Reservation{reserved, d.most}
	}
}

// AtPeak returns what a library held of the device memory at its peak, in bytes.
func (d *Driver) AtPeak(library string) int64 {
	bytes := int64(0)
	for _, a := range d.Accounts {
		if a.By == library && a.Counted {
			bytes += a.AtPeak
		}
	}
	return bytes
}

// Curve returns the most device memory that the process held in each of columns equal intervals of time, in bytes.
func (d *Driver) Curve(startNS, endNS int64, columns int) []float64 {
	return d.curve.columns(startNS, endNS, columns)
}
