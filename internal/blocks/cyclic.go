package blocks

import (
	"errors"
	"slices"

	"gm/internal/cuda"
)

var cyclicEntry = Entry{
	Name: "cyclic", CrossesStreams: true,
	About: "stitch that plans the iteration which the job repeats, and follows that plan: gmstitch run --auto; settings of stitch",
	configure: func(text string) (maker, error) {
		conf := PlannedStitchConf()
		err := conf.read(text)
		return func(dev cuda.Device, job *Job) (Allocator, error) {
			c, err := NewCyclic(dev, conf)
			if err == nil && job.Plan != nil {
				c.Record(MaxRecorded, func(iteration []Request) { job.Plan(c, iteration) })
			}
			return c, err
		}, err
	},
}

// Cyclic is Stitch for a job whose iterations make the same requests. Requests that follow a plan, in its order, get the addresses of the
// plan, without a search and, once the memory is there, without a driver call. Any other request goes to Stitch. The plan continues when
// the requests match it again.
type Cyclic struct {
	*Stitch
	least   int64 // bytes: smaller requests are neither recorded nor compared with a plan
	cycle   *Cycle
	arenas  []arena
	history *history  // nil if requests are not kept
	due     [][]int32 // by step, the steps whose memory is free again before it
	grams   grams

	begun    bool
	matched  int         // steps in a row that were as planned
	target   int64       // bytes that the plan needs, with what was in use before it
	next     int32       // the step that is expected next, none if that is not known
	states   []stepState // by step
	late     []int32     // what may be in the way: steps whose blocks are in use for longer than planned, and guests
	isLate   []bool      // by step
	guests   guests
	byPtr    index // the step of an address
	lender   lender
	followed int64
	strayed  int64
}

type stepState uint8

const (
	stepFree    stepState = iota
	stepLive              // handed out
	stepPending           // freed, but still used by another stream
)

// arena is the memory for steps of one stream: consecutive pieces, as many as were needed so far.
type arena struct {
	stream cuda.Stream
	size   int64
	region int32 // none before it is needed
	backed int64 // bytes from the start that have memory
}

// NewCyclic returns an allocator on dev that is Stitch until it is given a plan.
func NewCyclic(dev cuda.Device, conf StitchConf) (*Cyclic, error) {
	s, err := NewStitch(dev, conf)
	if err != nil {
		return nil, err
	}
	return newCyclic(s, 1), nil
}

// OverStitch returns an allocator that is a Stitch which may be in use already, until it is given a plan of its large requests. All requests
// and frees come to it from now on, apart from small ones and what an Outside keeps.
func OverStitch(s *Stitch) *Cyclic { return newCyclic(s, largeSize) }

func newCyclic(s *Stitch, least int64) *Cyclic {
	c := &Cyclic{Stitch: s, least: least, byPtr: newIndex(), next: none}
	c.lender = newLender(s.dev, c.release)
	c.lender.capturing = s.lender.capturing
	return c
}

// Adopt makes the allocator follow a plan, beginning with the first step: in the next iteration if the plan is proven, otherwise after an
// iteration that matched it. Memory in use stays where it is. A plan that is followed has to be abandoned before there is another.
func (c *Cyclic) Adopt(cycle *Cycle) error {
	if c.cycle != nil {
		return errors.New("the allocator already has a plan")
	}
	if err := cycle.Check(); err != nil {
		return err
	}
	c.cycle, c.due, c.grams = cycle, cycle.due(), newGrams(cycle.Steps)
	c.states, c.isLate = make([]stepState, len(cycle.Steps)), make([]bool, len(cycle.Steps))
	c.history = nil
	c.compared = true
	for _, size := range cycle.Arenas {
		c.arenas = append(c.arenas, arena{size: size, region: none})
	}
	for i := range cycle.Steps {
		if s := &cycle.Steps[i]; s.Arena != NoArena {
			c.arenas[s.Arena].stream = s.Stream
		}
	}
	return nil
}

// Planned reports whether there is a plan, and whether requests follow it already.
func (c *Cyclic) Planned() (planned, begun bool) { return c.cycle != nil, c.begun }

// Followed returns how many requests got their place of the plan, and how many others came while the plan was followed.
func (c *Cyclic) Followed() (followed, strayed int64) { return c.followed, c.strayed }

// Malloc implements Allocator.
func (c *Cyclic) Malloc(size int64, stream cuda.Stream, pool Pool) (cuda.Ptr, error) {
	switch {
	case pool != 0 || size < c.least:
		p, err := c.Stitch.Malloc(size, stream, pool)
		if err != nil {
			return c.insist(size, stream, pool, err)
		}
		return p, nil
	case c.cycle == nil:
		return c.mallocUnplanned(size, stream)
	}
	next, matched := c.next, c.matched
	p, err := c.mallocPlanned(size, stream)
	if err != nil && c.cycle != nil { // the request may come again, as the same step
		c.next, c.matched = next, matched
		c.grams.count--
	}
	return p, err
}

func (c *Cyclic) mallocPlanned(size int64, stream cuda.Stream) (cuda.Ptr, error) {
	waiting := c.lender.process() // if that fails there may still be other memory
	i := c.step(size, stream)
	if i != none && c.cycle.Steps[i].Arena != NoArena {
		ok, err := c.vacant(i)
		if ok {
			c.followed++
			return c.place(i), nil
		}
		waiting = errors.Join(waiting, err)
	}
	if !c.begun {
		return c.Stitch.Malloc(size, stream, 0)
	}
	p, err := c.stray(i, size, stream)
	if err != nil {
		return 0, errors.Join(err, waiting)
	}
	c.strayed++
	return p, nil
}

func (c *Cyclic) mallocUnplanned(size int64, stream cuda.Stream) (cuda.Ptr, error) {
	p, err := c.Stitch.Malloc(size, stream, 0)
	if err == nil && c.history != nil && c.history.malloc(p, size, stream) {
		c.StopRecording()
	}
	return p, err
}

// step returns the step of the plan that a request is, none if it cannot be identified or the plan is not followed yet.
func (c *Cyclic) step(size int64, stream cuda.Stream) int32 {
	c.grams.push(size, stream)
	is := func(i int32) bool { return c.cycle.Steps[i].Size == size && c.cycle.Steps[i].Stream == stream }
	i := c.next
	if i == none || !is(i) {
		if i = c.grams.find(i); i == none || !is(i) { // grams compares hashes
			return none
		}
		c.jump(i)
	}
	c.matched++
	c.next = c.after(i)
	if !c.begun && i == 0 && (c.cycle.Proven || c.matched > len(c.cycle.Steps)) {
		c.begin()
	}
	if !c.begun {
		return none
	}
	c.expire(i)
	return i
}

// jump moves on to step i and skips the steps before it, which did not come.
func (c *Cyclic) jump(i int32) {
	if c.begun {
		for at := c.next; at != i; at = c.after(at) {
			c.expire(at)
		}
	}
	c.matched = 0
}

// begin makes the allocator follow the plan.
func (c *Cyclic) begin() {
	c.begun = true
	c.target = c.Stats().Allocated
	for _, a := range c.arenas {
		c.target += a.size
	}
	c.target += c.target/256 + 4*c.pieceSize(0) // pieces that are in use only in part
}

func (c *Cyclic) after(i int32) int32 {
	if int(i)+1 == len(c.cycle.Steps) {
		return 0
	}
	return i + 1
}

// expire notes which blocks should be free before step i and are not.
func (c *Cyclic) expire(i int32) {
	for _, d := range c.due[i] {
		if c.states[d] != stepFree && !c.isLate[d] {
			c.late = append(c.late, d)
			c.isLate[d] = true
		}
	}
}

// vacant reports whether the place of step i is free and has memory. As the plan is valid, only blocks that live longer than planned can be
// in the way.
func (c *Cyclic) vacant(i int32) (bool, error) {
	s := &c.cycle.Steps[i]
	if c.states[i] != stepFree {
		return false, nil
	}
	for _, d := range c.late {
		if o := c.at(d); o.Arena == s.Arena && o.Offset < s.end() && s.Offset < o.end() {
			return false, nil
		}
	}
	a := &c.arenas[s.Arena]
	if s.end() <= a.backed {
		return true, nil
	}
	return c.back(a, c.heapOf(s.Stream), s.end())
}

// at returns step i, or the guest of that number.
func (c *Cyclic) at(i int32) *Step {
	if n := len(c.cycle.Steps); int(i) >= n {
		return &c.guests.steps[int(i)-n]
	}
	return &c.cycle.Steps[i]
}

// place hands out the place of step i.
func (c *Cyclic) place(i int32) cuda.Ptr {
	s := c.at(i)
	p := c.regions[c.arenas[s.Arena].region].ptr + cuda.Ptr(s.Offset)
	c.states[i] = stepLive
	c.byPtr.Set(p, i)
	c.stats.allocate(roundUp(s.Size, minBlockSize))
	c.follow()
	return p
}

// back gives an arena memory up to end: idle pieces of its heap, and new ones where the limits allow. It reports whether it could.
func (c *Cyclic) back(a *arena, h *heap, end int64) (bool, error) {
	c.settle(h)
	if a.region == none {
		id, err := c.Stitch.begin(h, a.size)
		if err != nil {
			return false, err
		}
		c.regions[id].planned = true
		a.region = id
	}
	for r := &c.regions[a.region]; a.backed < end; {
		id, err := c.spareFor(h, roundUp(a.size-a.backed, cuda.Granularity))
		if id == none || err != nil || r.end != a.backed || c.pieces[id].size > r.room() {
			return false, err
		}
		if err := c.mapAll(h, a.region, []int32{id}); err != nil {
			return false, err
		}
		size := c.pieces[id].size
		c.take(h, stretch{c.regions[a.region].ptr + cuda.Ptr(a.backed), size, a.region})
		a.backed += size
	}
	return true, nil
}

// spareFor returns a piece for an arena that lacks some bytes: the largest idle one of its heap that is not larger, else a new one if the
// limits allow, else a larger idle one; none if there is none.
func (c *Cyclic) spareFor(h *heap, lacks int64) (int32, error) {
	if below := h.idle.before(lacks+1, 0); below != none {
		return below, nil
	}
	if size := min(lacks, c.pieceSize(lacks)); c.Stats().Reserved+size <= c.target || c.mayGrow(0, size) {
		id, err := c.create(h, size)
		if !errors.Is(err, cuda.ErrOutOfMemory) {
			return id, err
		}
	}
	return h.idle.from(lacks+1, 0), nil
}

// Free implements Allocator.
func (c *Cyclic) Free(p cuda.Ptr) error {
	if c.history != nil {
		c.history.free(p)
	}
	i, ok := c.byPtr.Get(p)
	if !ok {
		return c.Stitch.Free(p)
	}
	if c.states[i] != stepLive {
		return errUnknownAddress
	}
	c.stats.Allocated -= roundUp(c.at(i).Size, minBlockSize)
	if c.lender.lent(i) {
		c.states[i] = stepPending
		return c.lender.await(i)
	}
	c.release(i)
	return nil
}

// release makes the place of step i free.
func (c *Cyclic) release(i int32) {
	c.states[i] = stepFree
	if c.isLate[i] {
		c.isLate[i] = false
		c.late = slices.DeleteFunc(c.late, func(d int32) bool { return d == i })
	}
	if int(i) >= len(c.cycle.Steps) {
		c.guests.gone = append(c.guests.gone, i)
	}
}

// Capture is [Torch.Capture].
func (c *Cyclic) Capture(on bool) error {
	return errors.Join(c.lender.capture(on), c.Stitch.Capture(on))
}

// RecordStream implements Allocator.
func (c *Cyclic) RecordStream(p cuda.Ptr, stream cuda.Stream) error {
	i, ok := c.byPtr.Get(p)
	if !ok || c.states[i] != stepLive {
		return c.Stitch.RecordStream(p, stream)
	}
	if stream != c.at(i).Stream {
		c.lender.borrow(i, stream)
	}
	return nil
}

// Empty implements Allocator. The memory of the plan stays.
func (c *Cyclic) Empty() error {
	return errors.Join(c.lender.synchronize(), c.Stitch.Empty())
}

// Segments is [Stitch.Segments].
func (c *Cyclic) Segments() []SegmentView {
	used := c.used()
	c.eachHeld(func(b heldBlock) {
		view := BlockView{b.ptr, b.size, BlockUsed}
		if b.pending {
			view.State = BlockPending
		}
		used = append(used, view)
	})
	return c.segments(used)
}

// eachHeld calls f for each block at a place of the plan.
func (c *Cyclic) eachHeld(f func(b heldBlock)) {
	for i, state := range c.states {
		if state == stepFree {
			continue
		}
		s := c.at(int32(i))
		region := c.arenas[s.Arena].region
		at := stretch{c.regions[region].ptr + cuda.Ptr(s.Offset), roundUp(s.Size, minBlockSize), region}
		f(heldBlock{at, state == stepPending})
	}
}

// Holdings implements Allocator, as Stitch does.
func (c *Cyclic) Holdings() []Holding {
	held := c.held()
	c.eachHeld(func(b heldBlock) { held = append(held, b) })
	return c.holdings(held)
}

// Pending is [Stitch.Pending].
func (c *Cyclic) Pending() (small, large int64) {
	small, large = c.Stitch.Pending()
	for i := range c.lender.events {
		large += roundUp(c.at(i).Size, minBlockSize)
	}
	return small, large
}
