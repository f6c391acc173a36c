package blocks

import (
	"errors"
	"fmt"
	"slices"

	"gm/internal/cuda"
)

// lender keeps blocks that streams other than their own have used out of circulation until those streams are done.
type lender struct {
	dev       cuda.Device
	release   func(block int32)       // puts a block back into circulation
	borrowers map[int32][]cuda.Stream // by block that is handed out
	events    map[int32]int           // by freed block, how many are still to pass
	queues    []*queue
	capturing bool // a CUDA graph is being captured: events are neither recorded nor queried

	spare struct { // for reuse
		streams [][]cuda.Stream
		queues  []*queue
	}
}

// queue is the freed blocks that wait for one stream, in the order in which they were freed.
type queue struct {
	stream cuda.Stream
	waits  []wait
}

type wait struct {
	event cuda.Event // 0 if it is still to be recorded
	block int32
}

func newLender(dev cuda.Device, release func(block int32)) lender {
	return lender{dev: dev, release: release, borrowers: map[int32][]cuda.Stream{}, events: map[int32]int{}}
}

// borrow notes that stream uses the block.
func (l *lender) borrow(block int32, stream cuda.Stream) {
	streams := l.borrowers[block]
	if slices.Contains(streams, stream) {
		return
	}
	if k := len(l.spare.streams) - 1; streams == nil && k >= 0 {
		streams, l.spare.streams = l.spare.streams[k], l.spare.streams[:k]
	}
	l.borrowers[block] = append(streams, stream)
}

// lent reports whether streams other than its own have used the block.
func (l *lender) lent(block int32) bool { return len(l.borrowers) > 0 && l.borrowers[block] != nil }

// await records an event in each stream that borrowed the block. It is released once all have passed. An event that cannot be recorded
// now, or only after a capture, is recorded later.
func (l *lender) await(block int32) error {
	streams := l.borrowers[block]
	delete(l.borrowers, block)
	l.events[block] = len(streams)
	var errs []error
	for _, stream := range streams {
		q := l.queue(stream)
		q.waits = append(q.waits, wait{block: block})
		if !l.capturing {
			errs = append(errs, l.record(q, len(q.waits)-1))
		}
	}
	l.spare.streams = append(l.spare.streams, streams[:0])
	return errors.Join(errs...)
}

// queue returns the queue of a stream.
func (l *lender) queue(stream cuda.Stream) *queue {
	for _, q := range l.queues {
		if q.stream == stream {
			return q
		}
	}
	q := &queue{}
	if k := len(l.spare.queues) - 1; k >= 0 {
		q, l.spare.queues = l.spare.queues[k], l.spare.queues[:k]
	}
	q.stream = stream
	l.queues = append(l.queues, q)
	return q
}

// record records an event that is still to be recorded.
func (l *lender) record(q *queue, i int) error {
	event, err := l.dev.EventRecord(q.stream)
	if err != nil {
		return fmt.Errorf("record an event for a freed block: %w", err)
	}
	q.waits[i].event = event
	return nil
}

// capture starts or ends the capture of a CUDA graph.
func (l *lender) capture(on bool) error {
	l.capturing = on
	if on {
		return nil
	}
	var errs []error
	for _, q := range l.queues {
		for i := range q.waits {
			if q.waits[i].event == 0 {
				errs = append(errs, l.record(q, i))
			}
		}
	}
	return errors.Join(errs...)
}

// process releases the blocks whose events have passed, in each stream up to the first event that has not.
func (l *lender) process() error {
	if len(l.queues) == 0 || l.capturing {
		return nil
	}
	return l.drain(false)
}

// synchronize waits for all events, but not during a capture.
func (l *lender) synchronize() error {
	if len(l.queues) == 0 || l.capturing {
		return nil
	}
	return l.drain(true)
}

// drain releases the blocks whose events have passed, in each stream up to the first event that has not. If wait is set it waits for all
// events.
func (l *lender) drain(wait bool) error {
	var errs []error
	for _, q := range l.queues {
		if err := l.drainQueue(q, wait); err != nil {
			errs = append(errs, err)
		}
	}
	l.queues = slices.DeleteFunc(l.queues, func(q *queue) bool {
		if len(q.waits) > 0 {
			return false
		}
		l.spare.queues = append(l.spare.queues, q)
		return true
	})
	return errors.Join(errs...)
}

func (l *lender) drainQueue(q *queue, wait bool) error {
	var err error
	n := 0
	for err == nil && n < len(q.waits) {
		var passed bool
		if passed, err = l.passed(q, n, wait); !passed {
			break
		}
		err = l.settle(q.waits[n])
		n++
	}
	q.waits = append(q.waits[:0], q.waits[n:]...)
	return err
}

// passed reports whether an event has passed. If wait is set it waits until it has.
func (l *lender) passed(q *queue, i int, wait bool) (passed bool, err error) {
	if q.waits[i].event == 0 {
		if err := l.record(q, i); err != nil {
			return false, err
		}
	}
	if passed = wait; wait {
		err = l.dev.EventSynchronize(q.waits[i].event)
	} else {
		passed, err = l.dev.EventQuery(q.waits[i].event)
	}
	if err != nil {
		return false, fmt.Errorf("query the event of a freed block: %w", err)
	}
	return passed, nil
}

// settle forgets an event that has passed and releases its block if it was the last one.
func (l *lender) settle(w wait) error {
	if l.events[w.block]--; l.events[w.block] == 0 {
		delete(l.events, w.block)
		l.release(w.block)
	}
	if err := l.dev.EventDestroy(w.event); err != nil {
		return fmt.Errorf("destroy the event of a freed block: %w", err)
	}
	return nil
}

// awaitBorrowers waits for the streams that use a block which is handed out.
func (l *lender) awaitBorrowers(block int32) error {
	for _, stream := range l.borrowers[block] {
		if l.capturing {
			return fmt.Errorf("wait for a stream that uses a block: %w", cuda.ErrCapturing)
		}
		if err := l.dev.StreamSynchronize(stream); err != nil {
			return fmt.Errorf("wait for a stream that uses a block: %w", err)
		}
	}
	return nil
}
