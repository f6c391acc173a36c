package link

import (
	"errors"
	"math"
	"slices"
	"time"

	"gm/internal/cuda"
)

// Copies are measured in rounds of many in a row. The first copy of a round is not counted.
const (
	rounds    = 5
	copyMost  = 64
	copyLeast = 4
	copyBytes = 256 * mib // that a round has for each direction, within these bounds
)

func copiesOf(size int64) int { return int(min(max(copyBytes/size, copyLeast), copyMost)) }

const (
	outLane = iota
	inLane
)

// flow is copies of one direction on one device, all of the same size.
type flow struct {
	b    *bench
	lane int
	size int64
	n    int

	took    cuda.Interval
	seconds []float64 // of one copy, by round
}

// queue puts the copies behind a gate.
func (f *flow) queue(gate cuda.Event) (err error) {
	s := f.b.lanes[f.lane]
	if err := f.b.StreamWaitEvent(s, gate); err != nil {
		return err
	}
	f.took, err = f.b.timed(s, f.n, func() error {
		if f.lane == outLane {
			return f.b.MemcpyDtoHAsync(f.b.pinned[outLane][:f.size], f.b.gpu[outLane], s)
		}
		return f.b.MemcpyHtoDAsync(f.b.gpu[inLane], f.b.pinned[inLane][:f.size], s)
	})
	return err
}

// timed has a stream do something n times, and returns the time that it will have taken.
func (b *bench) timed(s cuda.Stream, n int, do func() error) (cuda.Interval, error) {
	took, err := b.IntervalBegin(s)
	if err != nil {
		return cuda.Interval{}, err
	}
	for range n {
		if err := do(); err != nil {
			b.IntervalDestroy(took)
			return cuda.Interval{}, err
		}
	}
	return took, b.IntervalEnd(took, s)
}

// finish waits for the copies.
func (f *flow) finish() error {
	if err := f.b.StreamSynchronize(f.b.lanes[f.lane]); err != nil {
		return err
	}
	seconds, err := f.b.passed(f.took)
	f.seconds = append(f.seconds, seconds/float64(f.n))
	return err
}

// passed returns the length of an interval that has passed, in seconds, and forgets it.
func (b *bench) passed(i cuda.Interval) (float64, error) {
	took, passed, err := b.Elapsed(i)
	b.IntervalDestroy(i)
	if err == nil && !passed {
		err = errors.New("BUG: the time of work that is done is not known")
	}
	return took.Seconds(), err
}

// gate returns an event behind copies within the GPU that go on while some n copies are queued, so that these begin together.
func (b *bench) gate(n int) (cuda.Event, error) {
	for range 1 + n/copyMost {
		if err := b.copyWithin(); err != nil {
			return 0, err
		}
	}
	return b.EventRecord(b.work)
}

// copyWithin copies memory of the GPU to another place there.
func (b *bench) copyWithin() error { return b.MemcpyDtoDAsync(b.gpu[3], b.gpu[2], b.size, b.work) }

// run has flows go on at the same time, one round after the other.
func run(flows []flow) error {
	for range 1 + rounds {
		if err := runOnce(flows); err != nil {
			return err
		}
	}
	return nil
}

func runOnce(flows []flow) error {
	n := 0
	for i := range flows {
		n += flows[i].n
	}
	gates := map[*bench]cuda.Event{}
	for i := range flows {
		b := flows[i].b
		if gates[b] != 0 {
			continue
		}
		gate, err := b.gate(n)
		if err != nil {
			return err
		}
		gates[b] = gate
	}
	for i := range flows {
		if err := flows[i].queue(gates[flows[i].b]); err != nil {
			return err
		}
	}
	for i := range flows {
		if err := flows[i].finish(); err != nil {
			return err
		}
	}
	for b, gate := range gates {
		if err := b.EventDestroy(gate); err != nil {
			return err
		}
	}
	return nil
}

// median returns the time of one copy, without the first round.
func (f *flow) median() float64 { return median(f.seconds[1:]) }

func median(all []float64) float64 {
	all = slices.Sorted(slices.Values(all))
	return all[len(all)/2]
}

// ratesOf returns the rates of each of some devices while all of them copy, by size.
func ratesOf(all []*bench, largest int64) ([][]Rate, error) {
	rates := make([][]Rate, len(all))
	for _, size := range sizes {
		if size > largest {
			break
		}
		for i := range rates {
			rates[i] = append(rates[i], Rate{Bytes: size})
		}
		for _, lanes := range [...][]int{{outLane}, {inLane}, {outLane, inLane}} {
			if err := measure(all, lanes, size, rates); err != nil {
				return nil, err
			}
		}
	}
	return rates, nil
}

// measure enters the rates of one size into the last row of each device.
func measure(all []*bench, lanes []int, size int64, rates [][]Rate) error {
	var flows []flow
	for _, b := range all {
		for _, lane := range lanes {
			flows = append(flows, flow{b: b, lane: lane, size: size, n: copiesOf(size)})
		}
	}
	if err := run(flows); err != nil {
		return err
	}
	for i := range flows {
		f, of := &flows[i], rates[i/len(lanes)]
		last := len(of) - 1
		seconds := f.median()
		if last > 0 { // a larger copy takes no less time, whatever the clock says
			seconds = max(seconds, float64(of[last-1].Bytes)/float64(*field(&of[last-1], f.lane, len(lanes) > 1)))
		}
		*field(&of[last], f.lane, len(lanes) > 1) = bytesPerSecond(size, seconds)
	}
	return nil
}

// field returns where the rate of a direction is.
func field(r *Rate, lane int, both bool) *int64 {
	switch {
	case both && lane == outLane:
		return &r.BothOut
	case both:
		return &r.BothIn
	case lane == outLane:
		return &r.Out
	}
	return &r.In
}

// bytesPerSecond returns a rate within what a file may say.
func bytesPerSecond(bytes int64, seconds float64) int64 {
	return int64(math.Floor(min(max(float64(bytes)/seconds, minRate), maxRate)))
}

// workTime is how long copies within the GPU should go on when what slows them down is measured.
const workTime = 20 * time.Millisecond

// memorySlowdown compares copies within the GPU while it copies in both directions with those while it does not.
func (b *bench) memorySlowdown(largest Rate) (float64, error) {
	one, err := b.timeWork(1)
	if err != nil {
		return 0, err
	}
	n := int(min(max(workTime.Seconds()/max(one, 1e-9), 1), 1000))
	flows := []flow{
		{b: b, lane: outLane, size: largest.Bytes, n: enough(one*float64(n), largest.seconds(bothOutWay))},
		{b: b, lane: inLane, size: largest.Bytes, n: enough(one*float64(n), largest.seconds(bothInWay))},
	}
	var quiet, busy []float64
	for range 1 + rounds {
		took, err := b.timeWork(n)
		if err != nil {
			return 0, err
		}
		quiet = append(quiet, took)
		if took, err = b.timeBusyWork(n, flows); err != nil {
			return 0, err
		}
		busy = append(busy, took)
	}
	slowdown := median(busy[1:]) / median(quiet[1:])
	return min(max(slowdown, 1), maxSlowdown), nil
}

// enough is how many copies take longer than the work does, also where it is slowed down to half its speed.
func enough(work, one float64) int { return int(min(2*work/one, 1000)) + 2 }

// timeWork returns what n copies within the GPU take, in seconds.
func (b *bench) timeWork(n int) (float64, error) {
	took, err := b.timed(b.work, n, b.copyWithin)
	if err != nil {
		return 0, err
	}
	if err := b.StreamSynchronize(b.work); err != nil {
		return 0, err
	}
	return b.passed(took)
}

// timeBusyWork does the same while copies in both directions go on.
func (b *bench) timeBusyWork(n int, flows []flow) (float64, error) {
	gate, err := b.gate(flows[0].n + flows[1].n + n)
	if err != nil {
		return 0, err
	}
	for i := range flows {
		if err := flows[i].queue(gate); err != nil {
			return 0, err
		}
	}
	seconds, err := b.timeWork(n)
	for i := range flows {
		if err == nil {
			err = flows[i].finish()
		}
	}
	return seconds, errors.Join(err, b.EventDestroy(gate))
}
