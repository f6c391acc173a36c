package importer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// kinetoFlow is an end of an arrow from an operator of the forward pass to one of the backward pass.
type kinetoFlow struct {
	id     int64
	ns     int64 // since base; the operator runs then
	thread *kinetoThread
}

// kinetoFlows are the arrows of a profile.
type kinetoFlows struct {
	from, to []kinetoFlow
}

// flow keeps an end of an arrow.
func (k *kineto) flow(e *kinetoEvent) error {
	ns, err := nanoseconds(e.Time)
	if err != nil {
		return fmt.Errorf("ts: %w", err)
	}
	id, err := parseInt(strings.Trim(string(e.ID), `"`))
	if err != nil {
		return fmt.Errorf("id %w", err)
	}
	ends := &k.flows.from
	if e.Phase == "f" {
		ends = &k.flows.to
	}
	*ends = append(*ends, kinetoFlow{id, ns, k.thread(e)})
	k.spans++ // it takes less memory than a span
	return nil
}

// evaluation is the prefix of what autograd runs around an operator of the backward pass.
const evaluation = "autograd::engine::evaluate_function: "

// link tells the operators of the backward pass which frames ran around the operators of the forward pass that they belong to.
// The spans must be in order.
func (k *kineto) link() {
	forwards := k.linkForwards()
	walk(k.flows.to, func(f kinetoFlow, t *kinetoThread, _ []byte) {
		forward, known := forwards[f.id]
		if n := len(t.open); known && n > 0 {
			at := t.open[n-1]
			if n > 1 && strings.HasPrefix(k.names.frames[t.spans[t.open[n-2]].name], evaluation) {
				at = t.open[n-2]
			}
			t.spans[at].forward = forward
		}
	})
}

// linkForwards collects the frames at the beginnings of arrows. It returns their numbers, from 1, by the arrow.
func (k *kineto) linkForwards() map[int64]int32 {
	k.names.forwards = [][]byte{nil}
	numbers, byArrow := map[string]int32{}, map[int64]int32{}
	walk(k.flows.from, func(f kinetoFlow, _ *kinetoThread, key []byte) {
		n, known := numbers[string(key)]
		if !known {
			if k.text += 2*len(key) + textCost; k.text > maxProfileText {
				return // the backward pass is shown without it
			}
			n = int32(len(k.names.forwards))
			k.names.forwards = append(k.names.forwards, slices.Clone(key))
			numbers[string(key)] = n
		}
		byArrow[f.id] = n
	})
	return byArrow
}

// walk goes through the ends of arrows in order of time, and calls each with the thread at that time and the frames that run.
func walk(ends []kinetoFlow, each func(f kinetoFlow, t *kinetoThread, key []byte)) {
	slices.SortStableFunc(ends, func(a, b kinetoFlow) int { return cmp.Compare(a.ns, b.ns) })
	walkers := map[*kinetoThread]*kinetoThread{}
	var key []byte
	for _, f := range ends {
		t := walkers[f.thread]
		if t == nil {
			t = &kinetoThread{spans: f.thread.spans}
			walkers[f.thread] = t
		}
		key = t.at(f.ns, key[:0], nil)
		each(f, t, key)
	}
}
