package check

import "gm/internal/swap"

// history is where a tensor is through a step.
type history struct {
	held   []stretch // memory of the device is its own
	whole  []stretch // all of its rows are there
	hosted []hosted
}

// hosted is a copy on the host. Its memory can be another copy's once the compute stream has waited for the last copy back, because copies
// to the host begin behind that stream; if there is no such copy, from the tensor's last use on.
type hosted struct {
	stretch
	action int // Offload
}

// follow fills in the histories of all tensors and reports the actions that are not possible, and the operators that miss a tensor.
func (c *checker) follow() {
	mine := make([][]int, len(c.graph.Tensors)) // actions
	for i, a := range c.actions {
		mine[a.Tensor] = append(mine[a.Tensor], i)
	}
	copies := hostCopies(c.graph, c.actions, &c.order)
	c.tensors = make([]history, len(c.graph.Tensors))
	for t := range c.tensors {
		f := follower{checker: c, id: t, tensor: &c.graph.Tensors[t], heldFrom: never, wholeFrom: never}
		f.hosted = copies[t]
		f.walk(mine[t])
		c.tensors[t] = f.history
	}
}

// follower goes through what happens to one tensor.
type follower struct {
	*checker
	id     int
	tensor *swap.Tensor
	history
	made                bool
	over                int // copies on the host that ended before the last action
	heldFrom, wholeFrom int // the moments at which the present stretches began, or never
}

const never = -1

// walk goes through the actions, and the operators between them at which the tensor is made and used. Memory that is taken behind the last
// use stays taken until it is freed.
func (f *follower) walk(mine []int) {
	for i, op := range append([]int32{f.tensor.Made}, f.tensor.Uses...) {
		for ; len(mine) > 0 && f.actions[mine[0]].At <= op; mine = mine[1:] {
			f.act(mine[0])
		}
		moment := f.order.ofOp(int(op))
		if i == 0 {
			f.made = true
			f.hold(moment)
			f.wholeFrom = moment
		}
		if f.wholeFrom == never {
			f.report(Violation{-1, int(op), f.id, "it is used, and not all of it is on the device"})
		}
	}
	f.drop(f.order.ofOp(int(f.tensor.Last())))
	for _, i := range mine {
		f.act(i)
	}
	f.drop(f.order.moments() - 1)
}

func (f *follower) hold(moment int) {
	if f.heldFrom == never {
		f.heldFrom = moment
	}
}

// drop ends the present stretches at a moment, the last of them.
func (f *follower) drop(moment int) {
	if f.wholeFrom != never {
		f.whole = append(f.whole, stretch{f.wholeFrom, moment})
	}
	if f.heldFrom != never {
		f.held = append(f.held, stretch{f.heldFrom, moment})
	}
	f.heldFrom, f.wholeFrom = never, never
}

// onHost returns the bytes that are on the host at a moment, but for a copy that begins there. Moments do not go back, and no copy ends
// before one that began earlier.
func (f *follower) onHost(moment int) int64 {
	for ; f.over < len(f.hosted) && f.hosted[f.over].last < moment; f.over++ {
	}
	if f.over < len(f.hosted) && f.hosted[f.over].first < moment {
		return f.actions[f.hosted[f.over].action].Bytes
	}
	return 0
}

// act follows one action, and reports it if it is not possible.
func (f *follower) act(action int) {
	if !f.made {
		f.wrong(action, "the tensor is not written yet")
		return
	}
	moment := f.order.ofAction(action)
	switch f.actions[action].Kind {
	case swap.Offload:
		f.offload(action, moment)
	case swap.Free:
		f.free(action, moment)
	case swap.Prefetch:
		f.prefetch(action, moment)
	case swap.Recompute:
		f.recompute(action, moment)
	}
}

func (f *follower) offload(action, moment int) {
	bytes := f.actions[action].Bytes
	switch {
	case f.actions[action].At > f.tensor.Last():
		f.wrong(action, "the tensor is not used any more")
	case f.wholeFrom == never:
		f.wrong(action, "not all of the tensor is on the device")
	case !f.tensor.Copyable(bytes):
		f.wrong(action, "%d of the tensor's %d bytes", bytes, f.tensor.Bytes)
	case f.onHost(moment) > 0:
		f.wrong(action, "a copy is on the host already")
	}
}

func (f *follower) free(action, moment int) {
	switch {
	case f.wholeFrom == never:
		f.wrong(action, "not all of the tensor is on the device")
	case f.onHost(moment) < f.tensor.Bytes && f.tensor.Recompute == 0:
		f.wrong(action, "not all of the tensor is on the host, and it cannot be recomputed")
	}
	f.drop(moment - 1)
}

func (f *follower) prefetch(action, moment int) {
	bytes, there := f.actions[action].Bytes, f.onHost(moment)
	switch {
	case f.actions[action].At > f.tensor.Last():
		f.wrong(action, "the tensor is not used any more")
	case f.heldFrom != never:
		f.wrong(action, "the tensor is on the device")
	case there == 0 || bytes != there:
		f.wrong(action, "%d bytes of the tensor, of which %d are on the host", bytes, there)
	}
	f.hold(moment)
	if bytes == f.tensor.Bytes && f.wholeFrom == never {
		f.wholeFrom = moment
	}
}

func (f *follower) recompute(action, moment int) {
	switch {
	case f.wholeFrom != never:
		f.wrong(action, "all of the tensor is on the device")
		return
	case f.tensor.Recompute == 0:
		f.wrong(action, "the tensor cannot be recomputed")
	}
	f.hold(moment)
	f.wholeFrom = moment
}

// hostCopies returns the copies on the host of each tensor. Actions that make no sense make copies that make none.
func hostCopies(g *swap.Graph, actions []swap.Action, o *order) [][]hosted {
	lastBack := make([]int, len(g.Tensors)) // moments of the last copies back
	for i, a := range actions {
		if a.Kind == swap.Prefetch {
			lastBack[a.Tensor] = o.ofAction(i)
		}
	}
	ends := make([]int, len(g.Tensors))
	for t := range g.Tensors {
		ends[t] = waitAfter(&g.Tensors[t], o, lastBack[t])
	}
	wait := func(t int32, moment int) {
		if lastBack[t] > 0 && moment > lastBack[t] {
			ends[t] = min(ends[t], moment)
		}
	}
	for i, a := range actions {
		switch a.Kind {
		case swap.Free, swap.Await:
			wait(a.Tensor, o.ofAction(i))
		case swap.Recompute:
			for _, from := range g.Tensors[a.Tensor].From {
				wait(from, o.ofAction(i))
			}
		}
	}
	all := make([][]hosted, len(g.Tensors))
	for i, a := range actions {
		if a.Kind == swap.Offload {
			first, last := o.ofAction(i), ends[a.Tensor]
			if first > lastBack[a.Tensor] {
				last = max(first, o.ofOp(int(g.Tensors[a.Tensor].Last())))
			}
			all[a.Tensor] = append(all[a.Tensor], hosted{stretch{first, last}, i})
		}
	}
	return all
}

// waitAfter returns the moment of the first use of a tensor behind the last copy back, or of the last use.
func waitAfter(t *swap.Tensor, o *order, back int) int {
	for _, op := range t.Uses {
		if moment := o.ofOp(int(op)); back > 0 && moment > back {
			return moment
		}
	}
	return o.ofOp(int(t.Last()))
}
