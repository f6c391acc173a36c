package simulate

import (
	"errors"
	"time"

	"gm/internal/swap"
)

// Machine simulates steps of one graph over one link, any number of them one after the other.
type Machine struct {
	graph *swap.Graph
	link  swap.Copier
	makes swap.Lists
	ends  swap.Lists // tensors by their last use
	due   due
	state
}

// state is the state of the device between two operators.
type state struct {
	see    func(Span)
	place  []tensor
	result Result

	now     time.Duration // end of what the compute stream holds
	program time.Duration // when the program has launched that, and done what was to be done
	outFree time.Duration // ends of what the lanes of copies hold
	inFree  time.Duration
	used    int64 // bytes of the tensors that are on the device
	worst   int64 // the most of it that was taken since the last operator
	host    int64
}

// tensor is where a tensor is.
type tensor struct {
	made     bool
	resident bool
	whole    bool  // resident with all of its contents, if those under way are counted
	copied   int64 // bytes that were copied to the host
	hosted   bool  // those are still there
	left     time.Duration
	back     time.Duration // end of the copy back
	loads    int32         // copies back that are still to come; -1: the last is under way
}

// New returns a machine for steps of g, which must not change from then on.
func New(g *swap.Graph, link swap.Copier) *Machine {
	m := &Machine{graph: g, link: link, makes: g.Writers(), ends: g.Enders(), due: newDue(g)}
	m.place = make([]tensor, len(g.Tensors))
	return m
}

// begin gets ready for a step.
func (m *Machine) begin(actions []swap.Action, see func(Span)) {
	clear(m.place)
	m.due.clear()
	m.state = state{see: see, place: m.place}
	for i := range actions {
		if t := actions[i].Tensor; actions[i].Kind == swap.Prefetch && t >= 0 && int(t) < len(m.place) {
			m.place[t].loads++
		}
	}
	m.result.Actions = len(actions)
}

func (m *Machine) hold(t int32) {
	m.place[t].resident = true
	m.used += m.graph.Tensors[t].Bytes
	m.worst = max(m.worst, m.used)
}

func (m *Machine) drop(t int32) {
	p := &m.place[t]
	p.resident, p.whole = false, false
	m.used -= m.graph.Tensors[t].Bytes
}

var (
	errTensor   = errors.New("there is no such tensor")
	errKind     = errors.New("there is no such action")
	errNotMade  = errors.New("it is not written yet")
	errOver     = errors.New("its last use is over")
	errGone     = errors.New("it is not on the device")
	errThere    = errors.New("it is on the device")
	errNotHost  = errors.New("it is not in host memory")
	errTwice    = errors.New("it was copied before")
	errCopying  = errors.New("this many of the tensor's bytes cannot be copied alone")
	errRows     = errors.New("a part of it would have to be recomputed, which is not possible")
	errNoInputs = errors.New("what it is computed from is not on the device")
)

// act carries out one action.
func (m *Machine) act(a *swap.Action) error {
	if a.Tensor < 0 || int(a.Tensor) >= len(m.place) {
		return errTensor
	}
	p := &m.place[a.Tensor]
	if !p.made {
		return errNotMade
	}
	m.program += m.graph.Handling[min(a.Kind, swap.Settle)]
	switch a.Kind {
	case swap.Offload:
		return m.offload(a, p)
	case swap.Free:
		return m.free(a.Tensor, p)
	case swap.Prefetch:
		return m.prefetch(a, p)
	case swap.Recompute:
		return m.recompute(a.Tensor, p)
	case swap.Await:
		m.arrive(a.Tensor)
	case swap.Settle:
		m.wait(p.left, WaitOut, a.Tensor)
	default:
		return errKind
	}
	return nil
}

func (m *Machine) offload(a *swap.Action, p *tensor) error {
	t := &m.graph.Tensors[a.Tensor]
	switch {
	case a.At > t.Last():
		return errOver
	case !p.whole:
		return errGone
	case p.hosted:
		return errTwice
	case !t.Copyable(a.Bytes):
		return errCopying
	}
	begin := max(m.now, m.program, m.outFree, p.back)
	m.outFree = begin + m.link.OutTime(a.Bytes)
	m.span(Out, t.Name, begin, m.outFree, a.Tensor, false)
	p.copied, p.hosted, p.left = a.Bytes, true, m.outFree
	p.loads = max(p.loads, 0) // this copy is not the one that the last copy back is of
	m.host += a.Bytes
	m.result.Host = max(m.result.Host, m.host)
	m.result.Out += a.Bytes
	m.result.OutBusy += m.outFree - begin
	m.result.Offloads++
	return nil
}

func (m *Machine) free(t int32, p *tensor) error {
	if !p.resident {
		return errGone
	}
	if !p.whole {
		return errRows
	}
	kept := int64(0)
	if p.hosted {
		kept = p.copied
		m.wait(p.left, WaitOut, t)
	}
	if kept < m.graph.Tensors[t].Bytes && m.graph.Tensors[t].Recompute == 0 {
		return errRows
	}
	m.arrive(t) // another tensor may have the memory next
	m.drop(t)
	return nil
}

func (m *Machine) prefetch(a *swap.Action, p *tensor) error {
	t := &m.graph.Tensors[a.Tensor]
	switch {
	case a.At > t.Last():
		return errOver
	case p.resident:
		return errThere
	case !p.hosted:
		return errNotHost
	case a.Bytes != p.copied:
		return errCopying
	}
	m.hold(a.Tensor)
	begin := max(m.now, m.program, m.inFree, p.left)
	m.inFree = begin + m.link.InTime(a.Bytes)
	m.span(In, t.Name, begin, m.inFree, a.Tensor, false)
	p.back, p.whole = m.inFree, a.Bytes == t.Bytes
	m.result.In += a.Bytes
	m.result.InBusy += m.inFree - begin
	if p.loads--; p.loads == 0 {
		p.loads = -1
	}
	return nil
}

// arrive has the compute stream wait for the copy back of a tensor. Copies to the host begin behind the compute stream: from then on they
// can have the host memory of a tensor that is not copied back again.
func (m *Machine) arrive(t int32) {
	p := &m.place[t]
	m.wait(p.back, WaitIn, t)
	if p.loads < 0 {
		m.unhost(p)
	}
}

func (m *Machine) unhost(p *tensor) {
	if p.hosted {
		p.hosted = false
		m.host -= p.copied
	}
}

func (m *Machine) recompute(i int32, p *tensor) error {
	t := &m.graph.Tensors[i]
	if p.whole {
		return errThere
	}
	if t.Recompute == 0 {
		return errRows
	}
	rest := t.Bytes
	if p.resident {
		rest -= p.copied
	} else {
		m.hold(i)
	}
	m.worst = max(m.worst, m.used+t.Scratch)
	for _, from := range t.From {
		if !m.place[from].whole {
			return errNoInputs
		}
		m.arrive(from)
	}
	took := time.Duration(float64(t.Recompute) * float64(rest) / float64(t.Bytes))
	m.run(took, t.Relaunch, func(begin, end time.Duration) { m.span(Compute, t.Name, begin, end, i, false) })
	m.result.Recomputed += took
	p.whole = true
	return nil
}

// wait lets the compute stream wait until a time.
func (m *Machine) wait(until time.Duration, cause Cause, t int32) {
	if until <= m.now {
		return
	}
	m.span(Compute, cause.String(), m.now, until, t, true)
	m.result.Stalls[cause] += until - m.now
	m.now = until
}

func (m *Machine) span(lane Lane, name string, begin, end time.Duration, t int32, wait bool) {
	if m.see != nil {
		m.see(Span{Lane: lane, Name: name, Begin: begin, End: end, Tensor: t, Wait: wait})
	}
}

// run has the compute stream take so long for what the program launches now: it begins when the program has come to it, and ends no earlier than all of it
// is launched.
func (m *Machine) run(took, launch time.Duration, see func(begin, end time.Duration)) {
	begin := max(m.now, m.program)
	m.program += launch
	m.now = max(begin+took, m.program)
	see(begin, m.now)
}

// operate runs an operator.
func (m *Machine) operate(op int) error {
	o := &m.graph.Ops[op]
	for _, t := range m.due.take(int32(op)) {
		if p := &m.place[t]; !p.whole {
			return errors.New("tensor " + m.graph.Tensors[t].Name + ", which it reads, is not on the device")
		}
		m.arrive(t)
	}
	for _, t := range m.makes.Of(int32(op)) {
		m.place[t].made, m.place[t].whole = true, true
		m.hold(t)
	}
	if peak := max(m.worst, m.used) + o.Base; peak > m.result.Peak {
		m.result.Peak, m.result.PeakOp = peak, int32(op)
	}
	m.run(o.Duration, o.Launch, func(begin, end time.Duration) {
		if m.see != nil {
			m.see(Span{Name: o.Name, Begin: begin, End: end, Tensor: -1, Tensors: max(m.worst, m.used), Base: o.Base, Host: m.host})
		}
	})
	m.result.Compute += o.Duration
	for _, t := range m.ends.Of(int32(op)) {
		m.drop(t)
		m.unhost(&m.place[t])
	}
	m.worst = 0 // what is freed before the next operator is not in use beside it
	return nil
}

func (m *Machine) finish() *Result {
	m.result.Step = max(m.now, m.program, m.outFree, m.inFree)
	return &m.result
}
