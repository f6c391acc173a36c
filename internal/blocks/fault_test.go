package blocks

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"gm/internal/cuda"
)

// call is a method of cuda.Device that can be made to fail.
type call int

const (
	callCreate call = iota
	callMap
	callSetAccess
	callUnmap
	callRelease
	callAddressReserve
	callAddressFree
	callEventRecord
	callEventQuery
	callEventSynchronize
	callEventDestroy
	callStreamWaitEvent
	callStreamSynchronize
	callMemInfo
	callMemAlloc
	callMemFree
	numCalls
)

var callNames = [numCalls]string{
	"Create", "Map", "SetAccess", "Unmap", "Release", "AddressReserve", "AddressFree", "EventRecord", "EventQuery", "EventSynchronize",
	"EventDestroy", "StreamWaitEvent", "StreamSynchronize", "MemInfo", "MemAlloc", "MemFree",
}

var errInjected = errors.New("injected")

// faulty is a device some of whose calls fail.
type faulty struct {
	*streams
	fails  [numCalls]func(n int) error // by call, the error of its n-th call from 0
	counts [numCalls]int
	failed [numCalls]int
}

func (d *faulty) fail(c call) error {
	n := d.counts[c]
	d.counts[c]++
	if d.fails[c] == nil {
		return nil
	}
	err := d.fails[c](n)
	if err != nil {
		d.failed[c]++
	}
	return err
}

func (d *faulty) Create(size int64) (cuda.Handle, error) {
	if err := d.fail(callCreate); err != nil {
		return 0, err
	}
	return d.streams.Create(size)
}

func (d *faulty) Map(p cuda.Ptr, h cuda.Handle) error {
	return orElse(d.fail(callMap), func() error { return d.streams.Map(p, h) })
}

func (d *faulty) SetAccess(p cuda.Ptr, size int64) error {
	return orElse(d.fail(callSetAccess), func() error { return d.streams.SetAccess(p, size) })
}

func (d *faulty) Unmap(p cuda.Ptr, size int64) error {
	return orElse(d.fail(callUnmap), func() error { return d.streams.Unmap(p, size) })
}

func (d *faulty) Release(h cuda.Handle) error {
	return orElse(d.fail(callRelease), func() error { return d.streams.Release(h) })
}

func (d *faulty) AddressReserve(size int64) (cuda.Ptr, error) {
	if err := d.fail(callAddressReserve); err != nil {
		return 0, err
	}
	return d.streams.AddressReserve(size)
}

func (d *faulty) AddressFree(p cuda.Ptr, size int64) error {
	return orElse(d.fail(callAddressFree), func() error { return d.streams.AddressFree(p, size) })
}

func (d *faulty) EventRecord(s cuda.Stream) (cuda.Event, error) {
	if err := d.fail(callEventRecord); err != nil {
		return 0, err
	}
	return d.streams.EventRecord(s)
}

func (d *faulty) EventQuery(e cuda.Event) (bool, error) {
	if err := d.fail(callEventQuery); err != nil {
		return false, err
	}
	return d.streams.EventQuery(e)
}

func (d *faulty) EventSynchronize(e cuda.Event) error {
	return orElse(d.fail(callEventSynchronize), func() error { return d.streams.EventSynchronize(e) })
}

func (d *faulty) EventDestroy(e cuda.Event) error {
	err := d.fail(callEventDestroy)
	return errors.Join(err, d.streams.EventDestroy(e)) // the event is forgotten in any case
}

func (d *faulty) StreamWaitEvent(s cuda.Stream, e cuda.Event) error {
	return orElse(d.fail(callStreamWaitEvent), func() error { return d.streams.StreamWaitEvent(s, e) })
}

func (d *faulty) StreamSynchronize(s cuda.Stream) error {
	return orElse(d.fail(callStreamSynchronize), func() error { return d.streams.StreamSynchronize(s) })
}

func (d *faulty) MemInfo() (free, total int64, err error) {
	if err := d.fail(callMemInfo); err != nil {
		return 0, 0, err
	}
	return d.streams.MemInfo()
}

func (d *faulty) MemAlloc(size int64) (cuda.Ptr, error) {
	if err := d.fail(callMemAlloc); err != nil {
		return 0, err
	}
	return d.streams.MemAlloc(size)
}

func (d *faulty) MemFree(p cuda.Ptr) error {
	return orElse(d.fail(callMemFree), func() error { return d.streams.MemFree(p) })
}

func orElse(err error, call func() error) error {
	if err != nil {
		return err
	}
	return call()
}

// faults are the ways in which a call fails.
var faults = map[string]func(rng *rand.Rand, err error) func(n int) error{
	"once":    func(rng *rand.Rand, err error) func(n int) error { return failOnce(rng, err) },
	"often":   func(rng *rand.Rand, err error) func(n int) error { return failOften(rng, err) },
	"forever": func(rng *rand.Rand, err error) func(n int) error { return failForever(rng, err) },
}

func failOnce(rng *rand.Rand, err error) func(n int) error {
	at := rng.IntN(100)
	return func(n int) error {
		if n == at {
			return err
		}
		return nil
	}
}

func failOften(rng *rand.Rand, err error) func(n int) error {
	return func(int) error {
		if rng.IntN(4) == 0 {
			return err
		}
		return nil
	}
}

func failForever(rng *rand.Rand, err error) func(n int) error {
	at := rng.IntN(100)
	return func(n int) error {
		if n >= at {
			return err
		}
		return nil
	}
}

// TestFaults makes driver calls fail, and checks that no memory is handed out twice or lost, and that everything works once the device
// does.
func TestFaults(t *testing.T) {
	for c := range numCalls {
		for way := range faults {
			for what, err := range map[string]error{"full": cuda.ErrOutOfMemory, "other": errInjected} {
				t.Run(callNames[c]+"/"+way+"/"+what, func(t *testing.T) {
					for seed := range uint64(3) {
						runFaults(t, seed, func(rng *rand.Rand, d *faulty) { d.fails[c] = faults[way](rng, err) })
					}
				})
			}
		}
	}
}

// TestFaultsTogether makes all kinds of calls fail now and then.
func TestFaultsTogether(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			runFaults(t, seed, func(rng *rand.Rand, d *faulty) {
				for c := range numCalls {
					often := rng.IntN(30)
					d.fails[c] = func(int) error {
						switch x := rng.IntN(100); {
						case x < often:
							return errInjected
						case x < 2*often:
							return fmt.Errorf("injected: %w", cuda.ErrOutOfMemory)
						}
						return nil
					}
				}
			})
		})
	}
}

func runFaults(t *testing.T, seed uint64, arm func(rng *rand.Rand, d *faulty)) {
	rng := rand.New(rand.NewPCG(seed, 11))
	dev := &faulty{streams: newStreams(t, rng, 4, 400<<20)}
	r := crossing{t: t, rng: rng, dev: dev.streams, mixed: true}
	r.fails = func(err error) bool { return errors.Is(err, errInjected) || errors.Is(err, cuda.ErrOutOfMemory) }
	if seed%2 == 0 {
		a, err := NewStitch(dev, tightConf())
		if err != nil {
			t.Fatal(err)
		}
		r.a = a
	} else {
		a, err := NewCyclic(dev, tightConf())
		if err != nil {
			t.Fatal(err)
		}
		r.cycle = randomCycle(rng, 40, 3)
		if err := a.Adopt(r.cycle); err != nil {
			t.Fatal(err)
		}
		r.a = a
	}
	for i := range 2000 {
		if i == 300 {
			arm(rng, dev)
			dev.counts = [numCalls]int{}
		}
		if rng.IntN(100) == 0 {
			r.capture(!dev.capturing)
		}
		if c, ok := r.a.(*Cyclic); ok && r.cycle != nil {
			r.replan(c)
		}
		r.step()
	}
	if c, ok := r.a.(*Cyclic); ok {
		c.SetHasty(false)
	}
	r.capture(false)
	dev.fails = [numCalls]func(n int) error{}
	for range 300 {
		r.step()
	}
	r.finish()
}

// TestArenaThatCannotGrow checks that the places of a plan are right after mappings for them could not be undone.
func TestArenaThatCannotGrow(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 12))
	dev := &faulty{streams: newStreams(t, rng, 2, 400<<20)}
	a, err := NewCyclic(dev, tightConf())
	if err != nil {
		t.Fatal(err)
	}
	requests := []Request{{Size: 6 << 20, Lasts: 2}, {Size: 30 << 20, Lasts: 1}, {Size: 8 << 20, Lasts: 2}}
	r := crossing{t: t, rng: rng, dev: dev.streams, a: a, cycle: firstFit(requests)}
	if err := a.Adopt(r.cycle); err != nil {
		t.Fatal(err)
	}
	fail := func(n int) error {
		if n == 0 {
			return errInjected
		}
		return nil
	}
	for !a.begun {
		r.follow()
		if a.next == 0 { // what comes next is the first by plan
			dev.fails[callSetAccess], dev.fails[callUnmap] = fail, fail
			dev.counts = [numCalls]int{}
		}
	}
	for range 30 {
		r.follow()
	}
	if dev.failed[callUnmap] == 0 {
		t.Error("nothing failed")
	}
	r.finish()
}
