package snapshot

import (
	"fmt"
	"time"
)

// oddities counts what an input has that a sound one has not. Each kind gives one warning.
type oddities struct {
	unknown     int
	timeless    int
	backwards   int
	back        int64 // ns that one lies before the one above it, at most
	unexplained int
	replaced    int
	unmatched   int
	empty       int
	stacks      int
	cut         int
	tags        int
	gaps        int
	emptied     int
	states      int
}

func (o *oddities) warn(warn func(string)) {
	for _, w := range []struct {
		n    int
		text string
	}{
		{o.unknown, "events of unknown kinds are left out"},
		{o.timeless, "events carry no time: each is put 1 ns after the one before"},
		{o.backwards, fmt.Sprintf("events lie before the one above them, by up to %v: they are put at its time", time.Duration(o.back))},
		{o.unexplained, "segments or live blocks do not agree with the history"},
		{o.replaced, "blocks were never freed though their address was allocated again: they are freed there"},
		{o.unmatched, "frees are of blocks that are not live: they are left out"},
		{o.empty, "allocations of no bytes are left out"},
		{o.stacks, "stacks are left out: there are too many distinct ones"},
		{o.cut, "stacks are too long: their outermost frames are left out"},
		{o.states, "blocks are in unknown states: they are taken for free ones"},
		{o.gaps, "snapshots begin after the one before ended: entries between them, at least one each, are lost"},
		{o.emptied, "snapshots begin after the history was emptied: entries between them and the one before may be lost"},
		{o.tags, "texts of events are left out: there are too many distinct ones"},
	} {
		if w.n > 0 {
			warn(fmt.Sprintf("%d %s", w.n, w.text))
		}
	}
}
