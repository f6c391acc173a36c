package park

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
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
	for pieces := range d.batches() {
		if err = d.restoreIn(pieces, patience); err != nil {
			break
		}
	}
	err = errors.Join(err, d.synchronizeOthers())
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

// settle waits for the copies of the device's own link.
func (d *Device) settle() (err error) {
	const tries = 3
	for range tries {
		if err = d.StreamSynchronize(d.links[0].stream); err == nil {
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

// batches returns all pieces, by address, in batches of window bytes or a little more.
func (d *Device) batches() iter.Seq[[]*piece] {
	all := slices.SortedFunc(maps.Values(d.pieces), byAddress)
	return func(yield func([]*piece) bool) {
		for len(all) > 0 {
			n := 0
			for bytes := int64(0); n < len(all) && bytes < window; n++ {
				bytes += all[n].size
			}
			if !yield(all[:n]) {
				return
			}
			all = all[n:]
		}
	}
}

// restoreIn makes pieces what they were, their contents by copies that are queued. It waits for memory as long as patience for each.
func (d *Device) restoreIn(pieces []*piece, patience time.Duration) error {
	for _, p := range pieces {
		if err := d.createIn(p, patience); err != nil {
			return err
		}
		for _, m := range p.at {
			if m.mapped {
				continue
			}
			if err := d.Device.Map(m.p, p.real); err != nil {
				return err
			}
			m.mapped = true
		}
	}
	for _, r := range runs(mappings(pieces, func(m *mapping) bool { return m.opened && !m.accessible })) {
		if err := d.Device.SetAccess(r.p, r.size); err != nil {
			return err
		}
		for _, m := range r.of {
			m.accessible, m.peers = true, d.peers
		}
	}
	for _, p := range pieces {
		if p.stale {
			if err := d.copyIn(p.mapping(), p.slot); err != nil {
				return err
			}
		}
	}
	return nil
}

// createIn makes the memory of a piece that is away, once there is some, if that is within patience.
func (d *Device) createIn(p *piece, patience time.Duration) error {
	const nap = time.Millisecond
	for end := time.Now().Add(patience); p.real == 0; time.Sleep(nap) {
		real, err := d.Device.Create(p.size)
		if err == nil {
			p.real, p.stale = real, true
			return nil
		}
		if !errors.Is(err, cuda.ErrOutOfMemory) || time.Now().After(end) {
			return err
		}
	}
	return nil
}

// retreat gives back what was brought back in vain, so that others find memory while this waits for it.
func (d *Device) retreat() error {
	var vain []*piece
	for _, p := range d.pieces {
		if p.stale {
			vain = append(vain, p)
		}
	}
	_, err := d.vacate(vain)
	return err
}
