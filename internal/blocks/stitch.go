package blocks

import (
	"errors"
	"fmt"

	"gm/internal/cuda"
	"gm/internal/units"
)

var stitchEntry = Entry{
	Name: "stitch", CrossesStreams: true, InProcess: true,
	About: "gm's live allocator: free pieces are mapped together; slack=X, pieces=N, parts=N, piece_min=SIZE, piece_max=SIZE",
	configure: func(text string) (maker, error) {
		conf := DefaultStitchConf()
		err := conf.read(text)
		return func(dev cuda.Device, _ *Job) (Allocator, error) { return NewStitch(dev, conf) }, err
	},
}

// read reads settings.
func (c *StitchConf) read(text string) error {
	known := settings{
		"slack": &c.Slack, "pieces": &c.Pieces, "parts": &c.Parts,
		"piece_min": (*units.Bytes)(&c.PieceMin), "piece_max": (*units.Bytes)(&c.PieceMax),
	}
	if err := known.read(text); err != nil {
		return err
	}
	return c.check()
}

// StitchConf is the settings of Stitch.
type StitchConf struct {
	// Slack decides between new memory and stitching. New pieces are created only while the memory taken from the device exceeds the most
	// that was ever in use by at most this share of it. Beyond that, free pieces are stitched together.
	Slack float64
	// PieceMin and PieceMax bound the size of new pieces, in bytes. Both are multiples of cuda.Granularity. Between them the size grows
	// with the job: a piece has at least 1/Pieces of all memory that is taken, and at least 1/Parts of the request that it is created for.
	PieceMin, PieceMax int64
	Pieces, Parts      int64
	// Aliases is the average number of mappings of a piece above which the least recently used mappings are undone.
	Aliases int
}

// DefaultStitchConf returns the settings that docs/stitch.md argues for.
func DefaultStitchConf() StitchConf {
	return StitchConf{Slack: 0, PieceMin: 8 << 20, PieceMax: 64 << 20, Pieces: 192, Parts: 16, Aliases: 4}
}

// PlannedStitchConf returns the settings for a job that will follow a plan. They take the least memory at the cost of driver calls, which
// end once the job follows the plan.
func PlannedStitchConf() StitchConf {
	conf := DefaultStitchConf()
	conf.Slack, conf.Pieces = 0, 2048
	return conf
}

// Stitch is gm's own allocator. Physical memory is created in pieces of several sizes, each mapped as a whole at one or more ranges of
// addresses. A request takes bytes of such a range, as in an allocator that splits and joins blocks. The bytes are then taken in all the
// ranges that show them. Only if no range has room for a request is one extended or begun: with new pieces while StitchConf.Slack allows,
// otherwise with free pieces that are mapped elsewhere, too. So nothing is copied, and the host waits for nothing.
//
// One of the ranges, the main one, shows all pieces in the order in which they were created. A piece that is wholly free is offered there,
// so that free memory is contiguous again once stitched blocks are freed, whatever the sizes of the next requests.
//
// Each stream has its own ranges and pieces, its heap. A piece that is wholly free passes to another stream behind an event. Requests of up
// to 1 MiB and those of private pools are left to PyTorch's allocator.
//
// A freed block stays whole, warm, for the next request of its size in its stream. When a request finds no warm block of its size, all warm
// blocks are joined with the free memory. Stitch remembers, by size, where requests were placed: a job that repeats itself settles on
// places that do not collide, and then makes no driver calls.
type Stitch struct {
	besideTorch
	dev  cuda.Device
	conf StitchConf

	heaps    []*heap
	byStream map[cuda.Stream]int32
	recent   *heap // the heap of the last lookup
	pieces   []piece
	mappings []mapping
	regions  []region
	spare    struct{ pieces, mappings, regions []int32 } // indices for reuse
	mapped   int                                         // mappings in use
	clock    int64                                       // counts extensions, to tell which mapping was used last

	places []place
	gone   []int32 // unused places, for reuse
	byPtr  index   // the live place at an address
	lender lender

	maxPlaces int // above this number of places, free ones are forgotten
	maxHeaps  int // above this number of heaps, new streams take over those that hold nothing

	oldest   []unusedMapping // that are to be undone next
	edged    []edge          // buffer of edgesOf
	gathered [2][]int32      // buffers of stitching
	stitches int64
	searches int64
	hasty    bool // SetHasty
	compared bool // by a Cyclic: requests are recorded, or compared with a plan
}

// largeSize is the size in bytes from which requests are not left to PyTorch's allocator, where they would be large requests.
const largeSize = smallSize + 1

// NewStitch returns an allocator on dev.
func NewStitch(dev cuda.Device, conf StitchConf) (*Stitch, error) {
	if err := conf.check(); err != nil {
		return nil, err
	}
	beside, err := newBesideTorch(dev)
	if err != nil {
		return nil, err
	}
	s := &Stitch{besideTorch: beside, dev: dev, conf: conf, byPtr: newIndex(), byStream: map[cuda.Stream]int32{}}
	s.empty, s.torch.yield = s.Empty, s.yield
	s.lender = newLender(dev, s.cool)
	s.maxPlaces, s.maxHeaps = manyPlaces, manyHeaps
	return s, nil
}

func (c *StitchConf) check() error {
	switch {
	case !(c.Slack >= 0 && c.Slack <= 1000):
		return fmt.Errorf("slack of %g is not between 0 and 1000", c.Slack)
	case c.PieceMin < cuda.Granularity || c.PieceMin%cuda.Granularity != 0:
		return fmt.Errorf("pieces of %d bytes are not a multiple of %d", c.PieceMin, cuda.Granularity)
	case c.PieceMax < c.PieceMin:
		return fmt.Errorf("pieces of at most %d bytes: less than the least size of %d", c.PieceMax, c.PieceMin)
	case c.PieceMax%cuda.Granularity != 0:
		return fmt.Errorf("pieces of at most %d bytes are not a multiple of %d", c.PieceMax, cuda.Granularity)
	case c.PieceMax > regionSize/4:
		return fmt.Errorf("pieces of at most %d bytes: more than %d", c.PieceMax, int64(regionSize/4))
	case min(c.Pieces, c.Parts, int64(c.Aliases)) < 1 || max(c.Pieces, c.Parts, int64(c.Aliases)) > 1<<20:
		return fmt.Errorf("%d pieces, %d parts and %d mappings are not between 1 and %d", c.Pieces, c.Parts, c.Aliases, 1<<20)
	}
	return nil
}

// Slack returns the current StitchConf.Slack.
func (s *Stitch) Slack() float64 { return s.conf.Slack }

// SetSlack changes StitchConf.Slack.
func (s *Stitch) SetSlack(slack float64) { s.conf.Slack = slack }

// Stitches returns how many requests were met by mapping free pieces at further addresses.
func (s *Stitch) Stitches() int64 { return s.stitches }

// Searches returns how many requests found no warm block of their size.
func (s *Stitch) Searches() int64 { return s.searches }

// Malloc implements Allocator.
func (s *Stitch) Malloc(size int64, stream cuda.Stream, pool Pool) (cuda.Ptr, error) {
	if size < largeSize || pool != 0 {
		return s.mallocBeside(size, stream, pool)
	}
	if size > MaxSize {
		return 0, checkSize(size)
	}
	waiting := s.lender.process() // if this fails, other memory may still be free
	s.forgetPlaces()
	h := s.heapOf(stream)
	n := roundUp(size, minBlockSize)
	c := h.class(n)
	id := c.pop()
	if id == none {
		var err error
		if id, err = s.find(h, c, n); err != nil {
			return 0, errors.Join(err, waiting)
		}
	}
	return s.handOut(c, id), nil
}

// handOut makes the block of a place live, and returns its address.
func (s *Stitch) handOut(c *class, id int32) cuda.Ptr {
	p := &s.places[id]
	p.state = placeLive
	c.free[p.rank/64] &^= 1 << (p.rank % 64)
	s.byPtr.Set(p.ptr, id)
	s.stats.allocate(p.size)
	s.follow()
	return p.ptr
}

// mallocMapped is Malloc for a large request of the default pool, if it needs no mapping: it returns 0 if it does.
func (s *Stitch) mallocMapped(size int64, stream cuda.Stream) cuda.Ptr {
	if s.lender.process() != nil {
		return 0 // Malloc says why
	}
	s.forgetPlaces()
	h := s.heapOf(stream)
	c := h.class(roundUp(size, minBlockSize))
	id := c.pop()
	if id == none {
		if id = s.findMapped(h, c); id == none {
			return 0
		}
		s.searches++
	}
	return s.handOut(c, id)
}

func (s *Stitch) mallocBeside(size int64, stream cuda.Stream, pool Pool) (cuda.Ptr, error) {
	if err := checkSize(size); err != nil {
		return 0, err
	}
	return s.mallocTorch(size, stream, pool)
}

// find returns a place for n bytes on a heap that has no warm block of that size. It tries in order: a free place where a request of that
// size was before, unless it breaks n bytes more of wholly free pieces than the next; the smallest free range with room; a former place
// whose pieces can be fetched back from other streams; and an extended range.
func (s *Stitch) find(h *heap, c *class, n int64) (int32, error) {
	s.searches++
	if id := s.findMapped(h, c); id != none {
		return id, nil
	}
	id, reclaiming := s.reclaim(h, c)
	if id != none {
		return id, nil
	}
	at, err := s.makeRoom(h, n)
	if err != nil {
		return none, errors.Join(err, reclaiming)
	}
	return s.placeAt(h, c, at), nil
}

// findMapped is the part of find that needs no driver call. It returns none if that is not enough.
func (s *Stitch) findMapped(h *heap, c *class) int32 {
	s.settle(h)
	at, fits := h.free.fit(c.size)
	id := s.revisit(h, c, at, fits)
	if id == none && fits {
		id = s.placeAt(h, c, at)
	}
	return id
}

// makeRoom finds n bytes by mapping pieces.
func (s *Stitch) makeRoom(h *heap, n int64) (stretch, error) {
	at, err := s.extend(h, n)
	if errors.Is(err, cuda.ErrOutOfMemory) && !s.hasty {
		relieving := s.relieve()
		s.stats.Retries++
		if at, ok := h.free.fit(n); ok {
			return at, nil
		}
		if at, err = s.extend(h, n); errors.Is(err, cuda.ErrOutOfMemory) {
			err = errors.Join(s.oom(n), relieving)
		}
	}
	return at, err
}

// relieve frees blocks that wait for other streams and releases what PyTorch's allocator caches. During a capture it does neither.
func (s *Stitch) relieve() error {
	err := s.lender.synchronize()
	for _, h := range s.heaps {
		s.settle(h)
	}
	return errors.Join(err, s.torch.Empty())
}

// Free implements Allocator.
func (s *Stitch) Free(p cuda.Ptr) error {
	id, ok := s.byPtr.Get(p)
	if !ok || s.places[id].state != placeLive {
		return s.torch.Free(p)
	}
	s.stats.Allocated -= s.places[id].size
	if s.lender.lent(id) {
		s.places[id].state = placePending
		return s.lender.await(id)
	}
	s.cool(id)
	return s.markSome(s.heaps[s.places[id].heap])
}

// Capture is [Torch.Capture].
func (s *Stitch) Capture(on bool) error {
	return errors.Join(s.lender.capture(on), s.torch.Capture(on))
}

// capturing reports whether a CUDA graph is being captured.
func (s *Stitch) capturing() bool { return s.lender.capturing }

// RecordStream implements Allocator.
func (s *Stitch) RecordStream(p cuda.Ptr, stream cuda.Stream) error {
	id, ok := s.byPtr.Get(p)
	if !ok || s.places[id].state != placeLive {
		return s.torch.RecordStream(p, stream)
	}
	if stream != s.heaps[s.places[id].heap].stream {
		s.lender.borrow(id, stream)
	}
	return nil
}
