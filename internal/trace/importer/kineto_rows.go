package importer

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"gm/formats/trace"
)

// kinetoRows writes the rows of a profile.
type kinetoRows struct {
	*kineto
	out     *rows
	devices map[int32]*blocks
	stacks  map[string]int32 // codes of stacks by their frames
	key     []byte
}

// kinetoAlignment is the size of which PyTorch's blocks are multiples, in bytes. A profile has the sizes of blocks.
const kinetoAlignment = 512

// kineto imports a profile of torch.profiler.
func (t *text) kineto(src io.Reader) error {
	k := &kineto{}
	k.take = k.event
	if err := k.read(src); err != nil {
		return fmt.Errorf("profile: %w", err)
	}
	if k.base < 0 || k.base > trace.MaxTime {
		return fmt.Errorf("profile: baseTimeNanoseconds is %d, expected 0 to %d", k.base, int64(trace.MaxTime))
	}
	if err := k.choose(t.out.warn); err != nil {
		return err
	}
	k.describe(t.out.out.Meta())
	k.sortSpans()
	k.link()
	slices.SortStableFunc(k.moves, func(a, b kinetoMove) int { return cmp.Compare(a.ns, b.ns) })
	slices.SortStableFunc(k.marks, func(a, b kinetoMark) int { return cmp.Compare(a.ns, b.ns) })
	w := &kinetoRows{kineto: k, out: t.out, devices: map[int32]*blocks{}, stacks: map[string]int32{}}
	return w.write()
}

// choose keeps the memory of GPUs or, in a profile without any, that of the host.
func (k *kineto) choose(warn func(string)) error {
	isHost := func(m kinetoMove) bool { return m.host }
	switch {
	case len(k.moves) == 0:
		return errors.New("a profile without memory: torch.profiler.profile(profile_memory=True) records one with it")
	case !slices.ContainsFunc(k.moves, func(m kinetoMove) bool { return !m.host }):
		warn("the profile has no memory of a GPU: device 0 is the host's")
		k.devices = []kinetoDevice{{Name: "host"}}
	default:
		k.moves = slices.DeleteFunc(k.moves, isHost)
	}
	return nil
}

// describe fills in what the profile says of the machine and the job.
func (k *kineto) describe(meta *trace.Meta) {
	meta.Alignment = kinetoAlignment
	for _, d := range k.devices {
		if int(d.ID) == len(meta.Devices) && d.Memory >= 0 && d.Memory <= trace.MaxSize {
			meta.Devices = append(meta.Devices, d.Name)
			meta.Capacity = d.Memory
		}
	}
	if 0 <= k.rank.Rank && k.rank.Rank < k.rank.WorldSize {
		meta.Rank, meta.WorldSize = k.rank.Rank, k.rank.WorldSize
	}
}

// write writes all rows in order of time.
func (w *kinetoRows) write() error {
	if err := w.older(); err != nil {
		return err
	}
	marks := w.marks
	for i := range w.moves {
		m := &w.moves[i]
		for len(marks) > 0 && marks[0].ns <= m.ns {
			if err := w.mark(&marks[0]); err != nil {
				return err
			}
			marks = marks[1:]
		}
		if err := w.move(m); err != nil {
			return err
		}
	}
	for i := range marks {
		if err := w.mark(&marks[i]); err != nil {
			return err
		}
	}
	return nil
}

// older writes what was allocated before the profile began: what is freed in it, block by block, and the rest of what was in use, if it
// fits into an allocation.
func (w *kinetoRows) older() error {
	type use struct {
		live map[uint64]bool
		rest int64 // bytes in use before the first move that are not known yet
	}
	uses := map[int32]*use{}
	var found []trace.Event
	for i := range w.moves {
		m := &w.moves[i]
		if m.failed {
			continue
		}
		u := uses[m.device]
		if u == nil {
			u = &use{map[uint64]bool{}, m.total - m.bytes}
			uses[m.device] = u
		}
		if m.bytes < 0 && m.addr != 0 && !u.live[m.addr] {
			found = append(found, trace.Event{Device: m.device, Addr: m.addr, Size: -m.bytes})
			u.rest += m.bytes
		}
		u.live[m.addr] = m.bytes > 0
	}
	for device, u := range uses {
		if u.rest > 0 && u.rest <= trace.MaxSize {
			found = append(found, trace.Event{Device: device, Size: u.rest})
		}
	}
	slices.SortStableFunc(found, func(a, b trace.Event) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.Addr, b.Addr))
	})
	tag, first := w.out.text(trace.PreexistingTag(0)), w.moves[0].ns
	if len(w.marks) > 0 {
		first = min(first, w.marks[0].ns)
	}
	for _, e := range found {
		var err error
		if e.TimeNS, err = w.time(first); err != nil {
			return err
		}
		e.Tag = tag
		if err := w.blocksOf(e.Device).alloc(e); err != nil {
			return err
		}
	}
	return nil
}

func (w *kinetoRows) blocksOf(device int32) *blocks {
	b := w.devices[device]
	if b == nil {
		b = newBlocks(w.out)
		w.devices[device] = b
	}
	return b
}

// time returns a time in ns since the Unix epoch.
func (w *kinetoRows) time(ns int64) (int64, error) {
	if at := w.base + ns; at >= 0 && at <= trace.MaxTime {
		return at, nil
	}
	return 0, fmt.Errorf("time %d ns after %d ns is out of range", ns, w.base)
}

// move writes the row of an allocation, a free or a failed request.
func (w *kinetoRows) move(m *kinetoMove) error {
	at, err := w.time(m.ns)
	if err != nil {
		return err
	}
	e := trace.Event{TimeNS: at, Device: m.device, Addr: m.addr, Size: m.bytes, Thread: m.thread.number, Stack: w.stack(m)}
	switch {
	case m.failed:
		e.Op, e.Addr, e.Size = trace.OpOOM, 0, max(m.bytes, 0)
		return w.out.write(e)
	case m.bytes < 0:
		e.Size = -m.bytes
		return w.blocksOf(m.device).free(e)
	}
	return w.blocksOf(m.device).alloc(e)
}

// stack returns the code of the stack at a move.
func (w *kinetoRows) stack(m *kinetoMove) int32 {
	w.key = m.thread.at(m.ns, w.key[:0], w.names.forwards)
	code, known := w.stacks[string(w.key)]
	if !known {
		if w.text += len(w.key) + textCost; w.text > maxProfileText {
			w.out.odd.texts++
			return 0
		}
		code = w.out.stack(w.names.stack(w.key))
		w.stacks[string(w.key)] = code
	}
	return code
}

func (w *kinetoRows) mark(m *kinetoMark) error {
	at, err := w.time(m.ns)
	if err != nil {
		return err
	}
	return w.out.write(trace.Event{TimeNS: at, Op: trace.OpMark, Tag: w.out.text(m.text)})
}
