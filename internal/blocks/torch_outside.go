package blocks

import (
	"errors"
	"fmt"

	"gm/internal/cuda"
)

// Outside serves small requests of the default pool in place of a Torch, which gives it the segments for them.
type Outside interface {
	// TakeIdle takes a segment that is wholly free out of use and returns its address, or 0 if there is none.
	TakeIdle() cuda.Ptr
	// Return frees a block that was lent (Torch.LendOutside), once the other streams are done with it.
	Return(p cuda.Ptr)
}

// SmallSegment is the size of the segments for small requests, in bytes.
const SmallSegment = smallSegment

// outside is what a Torch knows of its Outside.
type outside struct {
	Outside
	allocated int64 // bytes that it has handed out
	lender    lender
	lent      []lent  // by the lender's number
	unused    []int32 // numbers
	byPtr     index   // number of an address
	returned  int     // blocks since ProcessOutside
}

// lent is a block that is handed out or freed, and that other streams use.
type lent struct {
	ptr  cuda.Ptr
	size int64
}

// ServeOutside leaves small requests of the default pool to o. Those that come nevertheless are served as before.
func (t *Torch) ServeOutside(o Outside) {
	t.outside = &outside{Outside: o, byPtr: newSmallIndex()}
	t.outside.lender = newLender(t.dev, t.outside.giveBack)
}

func (o *outside) giveBack(number int32) {
	p := o.lent[number].ptr
	o.unused = append(o.unused, number)
	o.returned++
	o.Return(p)
}

// setAllocated says how many bytes the Outside has handed out.
func (t *Torch) setAllocated(bytes int64) {
	t.stats.allocate(bytes - t.outside.allocated)
	t.outside.allocated = bytes
}

// outsideSegment takes a segment from the device for the Outside.
func (t *Torch) outsideSegment() (cuda.Ptr, error) {
	p, err := t.dev.MemAlloc(smallSegment)
	if err != nil {
		return 0, fmt.Errorf("allocate a segment: %w", err)
	}
	t.stats.reserve(smallSegment)
	return p, nil
}

// DropOutsideSegment returns a segment to the device.
func (t *Torch) DropOutsideSegment(p cuda.Ptr) error {
	t.stats.Reserved -= smallSegment
	if err := t.dev.MemFree(p); err != nil {
		return fmt.Errorf("free a segment: %w", err)
	}
	return nil
}

// emptyOutside returns the segments that are wholly free to the device.
func (t *Torch) emptyOutside() error {
	o := t.outside
	if o == nil {
		return nil
	}
	errs := []error{o.lender.synchronize()}
	for p := o.TakeIdle(); p != 0; p = o.TakeIdle() {
		errs = append(errs, t.DropOutsideSegment(p))
	}
	return errors.Join(errs...)
}

// LendOutside notes that another stream also uses a block of the Outside, of size bytes. From then on FreeOutside frees it.
func (t *Torch) LendOutside(p cuda.Ptr, size int64, stream cuda.Stream) {
	o := t.outside
	number, ok := o.byPtr.Get(p)
	if !ok {
		if k := len(o.unused) - 1; k >= 0 {
			number, o.unused = o.unused[k], o.unused[:k]
		} else {
			number = int32(len(o.lent))
			o.lent = append(o.lent, lent{})
		}
		o.lent[number] = lent{p, size}
		o.byPtr.Put(p, number)
	}
	o.lender.borrow(number, stream)
}

// FreeOutside frees a block that was lent.
func (t *Torch) FreeOutside(p cuda.Ptr) error {
	number, ok := t.outside.byPtr.Take(p)
	if !ok {
		return fmt.Errorf("free of %#x: %w", p, errUnknownAddress)
	}
	return t.outside.lender.await(number)
}

// ProcessOutside returns the blocks that were lent and freed, and with which the other streams are done. It reports whether any were
// returned since it was last called.
func (t *Torch) ProcessOutside() (bool, error) {
	err := t.outside.lender.process()
	any := t.outside.returned > 0
	t.outside.returned = 0
	return any, err
}

func (o *outside) pending() (bytes int64) {
	for number := range o.lender.events {
		bytes += o.lent[number].size
	}
	return bytes
}

// Torch returns the allocator that small requests and those of private pools are left to.
func (b *besideTorch) Torch() *Torch { return b.torch }

// SetAllocatedOutside says how many bytes the Outside has handed out now, and the most that this was since the last call.
func (b *besideTorch) SetAllocatedOutside(now, most int64) {
	if now == b.torch.outside.allocated && most == now {
		return
	}
	b.torch.setAllocated(most)
	b.follow()
	b.torch.setAllocated(now)
}

// OutsideSegment takes a segment of SmallSegment bytes from the device for the Outside. If the device has no room, memory that is not used is
// released first: as much as is needed, and then the whole cache.
func (b *besideTorch) OutsideSegment() (cuda.Ptr, error) {
	p, err := b.torch.outsideSegment()
	if b.torch.yield != nil && errors.Is(err, cuda.ErrOutOfMemory) {
		yielding := b.torch.yield(smallSegment)
		if p, err = b.torch.outsideSegment(); err != nil {
			err = errors.Join(err, yielding)
		}
	}
	if errors.Is(err, cuda.ErrOutOfMemory) {
		if err := b.empty(); err != nil {
			return 0, err
		}
		b.torch.stats.Retries++
		p, err = b.torch.outsideSegment()
	}
	b.follow()
	return p, err
}
