package park

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// window is how many bytes are copied before what was copied is given back to the device, whose driver does that beside the next copies.
const window = 512 << 20

// Sleep moves pieces to the host, the largest first: all, or as many as hold need bytes. It pins host memory for them, up to pinned bytes
// in all; what finds no room there stays. It returns the bytes that it moved. The caller sees to it that no work of the device is under way
// and that none comes before Wake, which is to be called also after an error.
func (d *Device) Sleep(need, pinned int64) (moved int64, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.ready(); err != nil {
		return 0, fmt.Errorf("put memory to sleep: %w", err)
	}
	pieces, total := d.choose(need, d.arena.room(pinned))
	if len(pieces) == 0 {
		return 0, nil
	}
	d.asleep = true
	d.arena.expect(total)
	out := leaving{Device: d}
	for _, p := range pieces {
		if err = out.add(p); err != nil {
			break
		}
	}
	if err = errors.Join(err, out.finish(err != nil)); err != nil {
		err = fmt.Errorf("put memory to sleep: %w", err)
	}
	return out.moved, err
}

// Prepare pins host memory for a later Sleep, up to pinned bytes in all, as long as goOn returns true: it is asked before each chunk, which
// takes some hundredths of a second, in which other calls of the driver may wait.
func (d *Device) Prepare(pinned int64, goOn func() bool) {
	d.mu.Lock()
	_, total := d.choose(math.MaxInt64, math.MaxInt64)
	d.mu.Unlock()
	d.arena.ahead(min(total, pinned), goOn)
}

// choose returns pieces that are to leave, of need bytes or a little more, or all, and at most of room bytes.
func (d *Device) choose(need, room int64) (pieces []*piece, total int64) {
	var all []*piece
	for _, p := range d.pieces {
		if p.real != 0 && !p.passed && !p.stale && p.mapping() != nil {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b *piece) int { return cmp.Or(cmp.Compare(b.size, a.size), byAddress(a, b)) })
	for _, p := range all {
		if total < need && total+p.size <= room {
			pieces = append(pieces, p)
			total += p.size
		}
	}
	slices.SortFunc(pieces, byAddress)
	return pieces, total
}

// mapping returns where a piece can be read and written, nil if nowhere.
func (p *piece) mapping() *mapping {
	for _, m := range p.at {
		if m.mapped && m.accessible {
			return m
		}
	}
	return nil
}

// leaving is pieces on their way to the host, in batches that are of window bytes or a little more. Two batches are under way at most.
type leaving struct {
	*Device
	batch   []*piece
	bytes   int64
	copied  []*piece // the batch before
	passed  []mark   // behind its copies
	moved   int64
	started bool
}

// add queues the copy of a piece.
func (l *leaving) add(p *piece) error {
	parts, err := l.arena.take(p.size)
	if err != nil {
		return err
	}
	p.slot = parts
	l.started = true
	if err := l.copyOut(p.mapping(), parts); err != nil {
		return err
	}
	l.batch = append(l.batch, p)
	if l.bytes += p.size; l.bytes < window {
		return nil
	}
	marks, err := l.marks()
	if err != nil {
		return errors.Join(err, forget(marks))
	}
	err = l.settle()
	l.copied, l.passed = l.batch, marks
	l.batch, l.bytes = nil, 0
	return err
}

func forget(marks []mark) (errs error) {
	for _, m := range marks {
		errs = errors.Join(errs, m.forget())
	}
	return errs
}

// settle waits for the batch before, and gives it back to the device.
func (l *leaving) settle() error {
	if l.passed == nil {
		return nil
	}
	var err error
	for _, m := range l.passed {
		err = errors.Join(err, m.wait())
	}
	l.passed = nil
	if err != nil {
		l.copied = nil
		return err
	}
	return l.drop(l.copied)
}

// finish waits for all copies. Unless one of them failed, what was copied last leaves, too.
func (l *leaving) finish(failed bool) error {
	if !l.started {
		return nil
	}
	err := l.synchronize()
	if err != nil || failed {
		return errors.Join(err, forget(l.passed))
	}
	return errors.Join(l.settle(), l.drop(l.batch))
}

// drop gives pieces that are on the host back to the device.
func (l *leaving) drop(pieces []*piece) error {
	moved, err := l.vacate(pieces)
	l.moved += moved
	return err
}

// vacate gives pieces back to the device, and returns the bytes. It can be called again where it failed.
func (d *Device) vacate(pieces []*piece) (bytes int64, err error) {
	for _, r := range runs(mappings(pieces, func(m *mapping) bool { return m.mapped })) {
		if err := d.Device.Unmap(r.p, r.size); err != nil {
			return 0, err
		}
		for _, m := range r.of {
			m.mapped, m.accessible = false, false
		}
	}
	for _, p := range pieces {
		if p.real == 0 {
			continue
		}
		if err := d.Device.Release(p.real); err != nil {
			return bytes, err
		}
		p.real, p.stale = 0, false
		bytes += p.size
	}
	return bytes, nil
}
