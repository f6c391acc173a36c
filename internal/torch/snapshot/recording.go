package snapshot

import (
	"errors"
	"fmt"

	"gm/formats/column"
	"gm/formats/trace"
)

// maxTracked bounds what is kept in memory for the second pass: block addresses, segments, mapped ranges, marks and
// live blocks, together.
const maxTracked = 8 << 20

// maxBlocks bounds the blocks of one segment: what a trace may have live at once.
const maxBlocks = 4 << 20

// recording is what the first pass over the snapshots of one process keeps for the second.
type recording struct {
	texts    *column.Strings
	tagBytes int // of the distinct tags
	stacks   *stacks

	devices map[int32]*history
	marks   []mark // of the last snapshot
	conf    string

	tracked int
	lasting int // of them those of the last snapshot alone
	room    int // see spool
	odd     oddities
}

func newRecording(texts *column.Strings) *recording {
	return &recording{
		texts: texts, stacks: newStacks(texts), devices: make(map[int32]*history), room: spoolMemory,
	}
}

// add implements entries.
func (r *recording) add(device int32, e record) error {
	if e.op == opUnknown {
		r.odd.unknown++
		return nil
	}
	h, err := r.historyOf(device)
	if err != nil {
		return err
	}
	switch last := h.spool.prev.time; {
	case e.time == timeless:
		r.odd.timeless++
		e.time = last + 1
	case e.time < last:
		r.odd.backwards++
		r.odd.back = max(r.odd.back, last-e.time)
		e.time = last
	}
	grown, err := h.add(e)
	if err != nil {
		return err
	}
	return r.track(grown)
}

// finish takes over what the last snapshot alone says, instead of what the one before did.
func (r *recording) finish(end last) error {
	r.tracked -= r.lasting
	r.marks, r.conf, r.lasting = end.marks, end.conf, end.tracked
	for _, h := range r.devices {
		h.segments = nil
	}
	for device, segments := range end.segments {
		h, err := r.historyOf(device)
		if err != nil {
			return err
		}
		h.segments = segments
	}
	return nil
}

// historyOf returns the history of a device, making it when it is new.
func (r *recording) historyOf(device int32) (*history, error) {
	if h := r.devices[device]; h != nil {
		return h, nil
	}
	if err := checkDevice(device); err != nil {
		return nil, err
	}
	h := newHistory(device, &r.room)
	r.devices[device] = h
	return h, nil
}

func checkDevice(device int32) error {
	if device < 0 || device > trace.MaxDevice {
		return fmt.Errorf("device %d: at most %d is supported", device, trace.MaxDevice)
	}
	return nil
}

// track counts n more things that are kept in memory for the second pass.
func (r *recording) track(n int) error {
	if r.tracked += n; r.tracked > maxTracked {
		return fmt.Errorf("more than %d distinct block addresses, segments and marks", maxTracked)
	}
	return nil
}

// write writes the rows, and warns of what is odd. It can be done once.
func (r *recording) write(out Sink, warn func(string)) error {
	r.odd.stacks, r.odd.cut = r.stacks.left, r.stacks.cut
	r.stacks = nil // only the first pass needs them
	if err := r.emit(out); err != nil {
		return err
	}
	r.odd.warn(warn)
	return nil
}

// describe fills in what the snapshots say of the trace as a whole.
func (r *recording) describe(meta *trace.Meta) {
	meta.Alignment = requestAlignment
	meta.AllocConf = r.conf
}

func (r *recording) close() error {
	var errs []error
	for _, h := range r.devices {
		errs = append(errs, h.spool.close())
	}
	return errors.Join(errs...)
}
