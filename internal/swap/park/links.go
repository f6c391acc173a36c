package park

import (
	"errors"
	"slices"

	"gm/internal/cuda"
	"gm/internal/cuda/driver"
)

// stride is how many bytes are copied at once, so that links share the copies evenly.
const stride = 32 << 20

// link is a GPU by whose link to the host copies go: the device itself, or another one, which reads and writes the device's memory directly.
type link struct {
	dev    *driver.Device
	stream cuda.Stream // 0 before the first copy
	queued int64       // bytes since the device began to sleep or wake
	failed bool        // another GPU's, and of no use from now on
}

// Help has copies go by the links of other GPUs, too, in equal parts. The last call of Peers has named them.
func (d *Device) Help(others []*driver.Device) {
	d.mu.Lock()
	defer d.mu.Unlock()
	own := d.links[0]
	d.links = []*link{own}
	for _, dev := range others {
		d.links = append(d.links, &link{dev: dev})
	}
}

// Peers is that of driver.Device. Memory that is mapped by now is not accessible to the others until SetAccess is called for it.
func (d *Device) Peers(ordinals []int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.Device.Peers(ordinals); err != nil {
		return err
	}
	d.peers++
	d.links = d.links[:1]
	return nil
}

// ready makes the streams of the links, and drops those that have failed.
func (d *Device) ready() (err error) {
	for i, l := range d.links {
		l.queued = 0
		if l.stream != 0 {
			continue
		}
		if l.stream, err = l.dev.StreamCreate(); err != nil && i == 0 {
			return err
		}
		l.failed = err != nil
	}
	d.links = slices.DeleteFunc(d.links, func(l *link) bool { return l.failed })
	return nil
}

// check returns an error of a link. Another GPU's is not used again after one.
func (d *Device) check(l *link, err error) error {
	l.failed = l.failed || err != nil && l != d.links[0]
	return err
}

// copyOut queues the copy of what is mapped to the host.
func (d *Device) copyOut(m *mapping, to [][]byte) error {
	return d.copy(m, to, func(l *link, p cuda.Ptr, part []byte) error { return l.dev.MemcpyDtoHAsync(part, p, l.stream) })
}

// copyIn queues the copy from the host to what is mapped.
func (d *Device) copyIn(m *mapping, from [][]byte) error {
	return d.copy(m, from, func(l *link, p cuda.Ptr, part []byte) error { return l.dev.MemcpyHtoDAsync(p, part, l.stream) })
}

func (d *Device) copy(m *mapping, parts [][]byte, queue func(*link, cuda.Ptr, []byte) error) error {
	p := m.p
	for _, part := range parts {
		for len(part) > 0 {
			n := min(len(part), stride)
			l := d.next(m)
			if err := d.check(l, queue(l, p, part[:n])); err != nil {
				return err
			}
			l.queued += int64(n)
			p += cuda.Ptr(n)
			part = part[n:]
		}
	}
	return nil
}

// next returns the link with the least to do of those that reach a mapping.
func (d *Device) next(m *mapping) *link {
	best := d.links[0]
	if m.peers != d.peers {
		return best
	}
	for _, l := range d.links[1:] {
		if l.queued < best.queued {
			best = l
		}
	}
	return best
}

// mark is a point in the copies of a link.
type mark struct {
	link   *link
	passed cuda.Event
}

// marks returns the points in all links behind what is queued. After an error it has those that could be made.
func (d *Device) marks() (all []mark, err error) {
	for _, l := range d.links {
		e, failed := l.dev.EventRecord(l.stream)
		if d.check(l, failed) != nil {
			return all, failed
		}
		all = append(all, mark{l, e})
	}
	return all, nil
}

// wait waits until a point has passed, and forgets it.
func (m mark) wait() error {
	return errors.Join(m.link.dev.EventSynchronize(m.passed), m.forget())
}

func (m mark) forget() error { return m.link.dev.EventDestroy(m.passed) }

// synchronize waits for all copies.
func (d *Device) synchronize() error {
	return errors.Join(d.StreamSynchronize(d.links[0].stream), d.synchronizeOthers())
}

// synchronizeOthers waits for the copies by other GPUs. One that fails to has lost its context, and copies nothing any longer.
func (d *Device) synchronizeOthers() (errs error) {
	for _, l := range d.links[1:] {
		errs = errors.Join(errs, d.check(l, l.dev.StreamSynchronize(l.stream)))
	}
	return errs
}
