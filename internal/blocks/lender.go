package blocks

import (
	"fmt"
	"slices"

	"gm/internal/cuda"
)

// lender keeps blocks that other streams than their own have used out of circulation until those streams are done.
type lender struct {
	dev       cuda.Device
	release   func(block int32)       // puts a block back into circulation
	borrowers map[int32][]cuda.Stream // by block that is handed out
	events    map[int32]int           // by freed block, how many are still to pass
	queues    []*queue
}

// queue is the freed blocks that wait for one stream, in the order in which they were freed.
type queue struct {
	stream cuda.Stream
	waits  []wait
}

type wait struct {
	event cuda.Event
	block int32
}

func newLender(dev cuda.Device, release func(block int32)) lender {
	return lender{dev: dev, release: release, borrowers: map[int32][]cuda.Stream{}, events: map[int32]int{}}
}

// borrow notes that stream uses the block.
func (l *lender) borrow(block int32, stream cuda.Stream) {
	if !slices.Contains(l.borrowers[block], stream) {
		l.borrowers[block] = append(l.borrowers[block], stream)
	}
}

// lent says whether other streams than its own have used the block.
func (l *lender) lent(block int32) bool { return len(l.borrowers) > 0 && l.borrowers[block] != nil }

// await records an event in each stream that borrowed the block. It is released once all have passed; if one cannot be
// recorded, never.
func (l *lender) await(block int32) error {
	streams := l.borrowers[block]
	delete(l.borrowers, block)
	l.events[block] = len(streams)
	for _, stream := range streams {
		event, err := l.dev.EventRecord(stream)
		if err != nil {
			return fmt.Errorf("record an event for a freed block: %w", err)
		}
		i := slices.IndexFunc(l.queues, func(q *queue) bool { return q.stream == stream })
		if i < 0 {
			i = len(l.queues)
			l.queues = append(l.queues, &queue{stream: stream})
		}
		l.queues[i].waits = append(l.queues[i].waits, wait{event, block})
	}
	return nil
}

// process releases the blocks whose events have passed, looking at each stream up to its first that has not.
func (l *lender) process() error { return l.drain(l.dev.EventQuery) }

// synchronize waits for all events.
func (l *lender) synchronize() error {
	return l.drain(func(e cuda.Event) (bool, error) { return true, l.dev.EventSynchronize(e) })
}

// drain releases the blocks whose events pass, each stream up to its first that does not.
func (l *lender) drain(pass func(cuda.Event) (bool, error)) error {
	if len(l.queues) == 0 {
		return nil
	}
	defer l.forgetIdle()
	for _, q := range l.queues {
		for len(q.waits) > 0 {
			passed, err := pass(q.waits[0].event)
			if err != nil {
				return fmt.Errorf("ask after the event of a freed block: %w", err)
			}
			if !passed {
				break
			}
			w := q.waits[0]
			q.waits = q.waits[1:]
			if err := l.settle(w); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *lender) forgetIdle() {
	l.queues = slices.DeleteFunc(l.queues, func(q *queue) bool { return len(q.waits) == 0 })
}

// settle forgets an event that has passed and releases its block if it was the last one.
func (l *lender) settle(w wait) error {
	if err := l.dev.EventDestroy(w.event); err != nil {
		return fmt.Errorf("destroy the event of a freed block: %w", err)
	}
	if l.events[w.block]--; l.events[w.block] == 0 {
		delete(l.events, w.block)
		l.release(w.block)
	}
	return nil
}
