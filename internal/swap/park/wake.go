package park

import (
	"errors"
	"fmt"
	"time"

	"gm/internal/cuda"
)

// ShortError says that a device has too little free memory for what is to come back. It wraps cuda.ErrOutOfMemory.
type ShortError struct{ Need, Free int64 } // bytes

func (e *ShortError) Error() string {
	return fmt.Sprintf("%d bytes are to come back, and %d are free on the device", e.Need, e.Free)
}

// Unwrap makes it an error of memory.
func (e *ShortError) Unwrap() error { return cuda.ErrOutOfMemory }

// Wake brings all memory back. After an error all that was away is away still, and Wake may be called again; where memory was not there it
// is a *ShortError. With patience it waits as long for each piece, for a device that another program is leaving.
func (d *Device) Wake(patience time.Duration) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.asleep {
		return nil
	}
	if err := d.room(); err != nil && patience == 0 {
		return err
	}
	err := d.ready()
	if err != nil {
		return fmt.Errorf("bring memory back: %w", err)
	}
	for _, p := range d.pieces {
		if err = d.restoreIn(p, patience); err != nil {
			break
		}
	}
	if unknown := d.settle(); unknown != nil { // copies may be under way: all stays where it is
		return fmt.Errorf("bring memory back: %w", errors.Join(err, unknown))
	}
	if err != nil {
		err = errors.Join(err, d.retreat())
		if errors.Is(err, cuda.ErrOutOfMemory) {
			if short := d.room(); short != nil {
				return short
			}
		}
		return fmt.Errorf("bring memory back: %w", err)
	}
	for _, p := range d.pieces {
		p.stale, p.slot = false, nil
	}
	d.arena.reset()
	d.asleep = false
	d.back.Broadcast()
	return nil
}

// settle waits for the copies.
func (d *Device) settle() (err error) {
	const tries = 3
	for range tries {
		if err = d.synchronize(); err == nil {
			return nil
		}
	}
	return err
}

// room returns an error if the device has too little memory for what is away.
func (d *Device) room() error {
	free, _, err := d.Device.MemInfo()
	if err != nil {
		return err
	}
	var need int64
	for _, p := range d.pieces {
		if p.real == 0 {
			need += p.size
		}
	}
	if need > free {
		return &ShortError{Need: need, Free: free}
	}
	return nil
}

// restoreIn restores a piece once there is memory for it, if that is within patience.
func (d *Device) restoreIn(p *piece, patience time.Duration) error {
	const nap = time.Millisecond
	for end := time.Now().Add(patience); ; time.Sleep(nap) {
		err := d.restore(p)
		if !errors.Is(err, cuda.ErrOutOfMemory) || time.Now().After(end) {
			return err
		}
	}
}

// restore makes a piece what it was, its contents by a copy that is queued. It can be called again where it failed.
func (d *Device) restore(p *piece) (err error) {
	if p.real == 0 {
		if p.real, err = d.Device.Create(p.size); err != nil {
			p.real = 0
			return err
		}
		p.stale = true
	}
	for _, m := range p.at {
		if !m.mapped {
			if err := d.Device.Map(m.p, p.real); err != nil {
				return err
			}
			m.mapped = true
		}
		if m.opened && !m.accessible {
			if err := d.Device.SetAccess(m.p, p.size); err != nil {
				return err
			}
			m.accessible, m.peers = true, d.peers
		}
	}
	if !p.stale {
		return nil
	}
	return d.copyIn(p.mapping(), p.slot)
}

// retreat gives back what was brought back in vain, so that others find memory while this waits for it.
func (d *Device) retreat() (errs error) {
	for _, p := range d.pieces {
		if p.stale {
			errs = errors.Join(errs, d.vacate(p))
		}
	}
	return errs
}
