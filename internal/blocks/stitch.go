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
	// Slack is how far the memory taken from the device may exceed the most that was ever in use, as a share of it, before free pieces
	// are stitched together where new ones could be made.
	Slack float64
	// PieceMin and PieceMax bound the size of new physical memory, in bytes: multiples of cuda.Granularity. Between them it grows with
	// the job: pieces are not less than 1/Pieces of all memory that is taken, nor 1/Parts of the request that they are made for.
	PieceMin, PieceMax int64
	Pieces, Parts      int64
	// Aliases is how many mappings there may be, for each piece, before those that were used longest ago are undone.
	Aliases int
}

// DefaultStitchConf returns the settings that docs/stitch.md argues for.
func DefaultStitchConf() StitchConf {
	return StitchConf{Slack: 0, PieceMin: 8 << 20, PieceMax: 256 << 20, Pieces: 192, Parts: 64, Aliases: 4}
}

// PlannedStitchConf returns the settings for a job that is to follow a plan: the least memory until it does, as the driver is not called then.
func PlannedStitchConf() StitchConf {
	conf := DefaultStitchConf()
	conf.Slack, conf.Pieces = 0, 2048
	return conf
}

// Stitch is gm's own allocator. Physical memory is made in pieces of several sizes, each mapped as a whole at one or more ranges of
// addresses. A request takes bytes of such a range, as in an allocator that splits and joins: the bytes are then taken in all the
// ranges that show them. Only if no range has room for a request is one extended or begun, with new pieces as long as little memory is
// in use, otherwise with pieces that are free and mapped elsewhere, too, so that nothing is copied and nothing is waited for.
//
// Each stream has its own ranges and pieces, its heap. A piece that is wholly free passes to another stream behind an event.
// Requests of up to 1 MiB and those of private pools are left to PyTorch's allocator.
//
// A freed block stays as it is, warm, until a request of its stream finds none of its size; then the free memory is joined. Where a
// request was placed is remembered, by size: a job that repeats itself comes to places that do not collide, and then makes no
// call of the driver.
type Stitch struct {
	besideTorch
	dev  cuda.Device
	conf StitchConf

	heaps    []*heap
	byStream map[cuda.Stream]int32
	recent   *heap // the last one that was asked for
	pieces   []piece
	mappings []mapping
	regions  []region
	spare    struct{ pieces, mappings, regions []int32 } // indices to use again
	mapped   int                                         // mappings in use
	clock    int64                                       // counts extensions: what was used last

	places []place
	gone   []int32 // places to use again
	byPtr  index   // the live place at an address
	lender lender

	maxPlaces int // how many places there may be before those that are free are forgotten
	maxHeaps  int // how many heaps there may be before new streams take over those that hold nothing

	edged    []edge     // room for edgesOf
	gathered [2][]int32 // room for stitching
	stitches int64
	searches int64
}

// largeSize is from where on requests are not left to PyTorch's allocator, in bytes: its own large requests.
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
	s.empty = s.Empty
	s.lender = newLender(dev, s.cool)
	s.maxPlaces, s.maxHeaps = manyPlaces, manyHeaps
	return s, nil
}

func (c *StitchConf) check() error {
	switch {
	case !(c.Slack >= 0 && c.Slack <= 1000):
		return fmt.Errorf("slack of %g is not within 0 and 1000", c.Slack)
	case c.PieceMin < cuda.Granularity || c.PieceMin%cuda.Granularity != 0:
		return fmt.Errorf("pieces of %d bytes are no multiple of %d", c.PieceMin, cuda.Granularity)
	case c.PieceMax < c.PieceMin:
		return fmt.Errorf("pieces of at most %d bytes: less than the least size of %d", c.PieceMax, c.PieceMin)
	case c.PieceMax%cuda.Granularity != 0:
		return fmt.Errorf("pieces of at most %d bytes are no multiple of %d", c.PieceMax, cuda.Granularity)
	case c.PieceMax > regionSize/4:
		return fmt.Errorf("pieces of at most %d bytes: more than %d", c.PieceMax, int64(regionSize/4))
	case min(c.Pieces, c.Parts, int64(c.Aliases)) < 1 || max(c.Pieces, c.Parts, int64(c.Aliases)) > 1<<20:
		return fmt.Errorf("%d pieces, %d parts and %d mappings are not within 1 and %d", c.Pieces, c.Parts, c.Aliases, 1<<20)
	}
	return nil
}

// Slack returns StitchConf.Slack as it is now.
func (s *Stitch) Slack() float64 { return s.conf.Slack }

// SetSlack changes StitchConf.Slack.
func (s *Stitch) SetSlack(slack float64) { s.conf.Slack = slack }

// Stitches returns how many requests were met by mapping free pieces once more.
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
	waiting := s.lender.process() // if that fails there may still be other memory
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
	p := &s.places[id]
	p.state = placeLive
	c.free[p.rank/64] &^= 1 << (p.rank % 64)
	s.byPtr.Set(p.ptr, id)
	s.stats.allocate(n)
	s.follow()
	return p.ptr, nil
}

func (s *Stitch) mallocBeside(size int64, stream cuda.Stream, pool Pool) (cuda.Ptr, error) {
	if err := checkSize(size); err != nil {
		return 0, err
	}
	return s.mallocTorch(size, stream, pool)
}

// find returns a place for n bytes on a heap that has no warm one: where a request of that size was before, the smallest range that
// has room, where one was before if pieces of other streams are fetched back, or a range that is extended.
func (s *Stitch) find(h *heap, c *class, n int64) (int32, error) {
	s.searches++
	s.settle(h)
	if id := s.revisit(h, c); id != none {
		return id, nil
	}
	if at, ok := h.free.fit(n); ok {
		return s.placeAt(h, c, at), nil
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

// makeRoom finds n bytes by mapping pieces.
func (s *Stitch) makeRoom(h *heap, n int64) (stretch, error) {
	at, err := s.extend(h, n)
	if errors.Is(err, cuda.ErrOutOfMemory) {
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

// relieve frees what waits for other streams and gives back what PyTorch's allocator caches, but not during a capture.
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

// capturing says whether a CUDA graph is being captured.
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
