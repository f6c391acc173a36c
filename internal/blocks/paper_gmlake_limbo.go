package blocks

import (
	"errors"

	"gm/internal/cuda"
)

// limbo holds addresses that are no longer handed out, until the stream that used them is done with them. Then it unmaps them.
type limbo struct {
	dev     cuda.Device
	waiting lender
	ranges  []limboRange
	spare   []int32 // ranges for reuse
	freed   int64   // bytes of chunks that were released
	errs    []error // of what was released
}

// limboRange is a range of addresses, and the chunks that go with it.
type limboRange struct {
	ptr    cuda.Ptr
	size   int64
	chunks []cuda.Handle
}

func newLimbo(dev cuda.Device) *limbo {
	l := &limbo{dev: dev}
	l.waiting = newLender(dev, l.end)
	return l
}

// put adds a range that a stream has used. An event that cannot be recorded now is recorded later.
func (l *limbo) put(r limboRange, stream cuda.Stream) {
	id := int32(len(l.ranges))
	if k := len(l.spare) - 1; k >= 0 {
		id, l.spare = l.spare[k], l.spare[:k]
		l.ranges[id] = r
	} else {
		l.ranges = append(l.ranges, r)
	}
	l.waiting.borrow(id, stream)
	if err := l.waiting.await(id); err != nil {
		l.errs = append(l.errs, err)
	}
}

// end unmaps a range that its stream is done with.
func (l *limbo) end(id int32) {
	r := l.ranges[id]
	l.errs = append(l.errs, unmapChunks(l.dev, r.ptr, r.size), releaseChunks(l.dev, r.chunks))
	l.freed += int64(len(r.chunks)) * chunkSize
	l.ranges[id] = limboRange{}
	l.spare = append(l.spare, id)
}

// process unmaps what streams are done with. It returns the bytes of chunks that were released since the last call.
func (l *limbo) process() (freed int64, err error) { return l.took(l.waiting.process()) }

// synchronize is process, but waits for the streams. During a capture it does not wait.
func (l *limbo) synchronize() (freed int64, err error) { return l.took(l.waiting.synchronize()) }

func (l *limbo) took(waiting error) (freed int64, err error) {
	freed, err = l.freed, errors.Join(append(l.errs, waiting)...)
	l.freed, l.errs = 0, l.errs[:0]
	return freed, err
}
