package live

import (
	"errors"
	"fmt"

	"gm/internal/bench/replay"
	"gm/internal/cuda"
)

// maxStreams is the most streams that a run creates: far more than a job uses.
const maxStreams = 1024

// streams are the streams of a device that stand for those of a program.
type streams struct {
	gpu       GPU
	all       []cuda.Stream
	owners    map[cuda.Stream]cuda.Stream // by the program's
	borrowers []cuda.Stream
	lent      []int32  // by tensor, its borrower
	scratch   cuda.Ptr // a word that streams write to have some work
}

func newStreams(p *replay.Program, gpu GPU) (*streams, error) {
	s := &streams{gpu: gpu, owners: map[cuda.Stream]cuda.Stream{}}
	var borrowers int
	s.lent, borrowers = p.Borrowers()
	var owners []cuda.Stream
	for _, of := range p.Streams {
		if _, known := s.owners[of]; !known {
			s.owners[of] = 0
			owners = append(owners, of)
		}
	}
	if n := borrowers + len(owners); n > maxStreams {
		return nil, fmt.Errorf("%d streams, more than the %d that a run creates", n, maxStreams)
	}
	if err := s.create(owners, borrowers); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// create creates the streams and gives each some work: a device takes memory for the first.
func (s *streams) create(owners []cuda.Stream, borrowers int) (err error) {
	if s.scratch, err = s.gpu.MemAlloc(wordBytes); err != nil {
		return fmt.Errorf("allocate a word: %w", err)
	}
	for i := range len(owners) + borrowers {
		stream, err := s.gpu.StreamCreate()
		if err != nil {
			return fmt.Errorf("create a stream: %w", err)
		}
		s.all = append(s.all, stream)
		if i < len(owners) {
			s.owners[owners[i]] = stream
		}
		if err := errors.Join(s.work(stream), s.follow(stream, stream)); err != nil {
			return err
		}
	}
	s.borrowers = s.all[len(owners):]
	return s.gpu.Synchronize()
}

func (s *streams) work(in cuda.Stream) error { return s.gpu.MemsetD32Async(s.scratch, 0, 1, in) }

// follow makes the further work of a stream wait for the present work of another.
func (s *streams) follow(stream, other cuda.Stream) error {
	e, err := s.gpu.EventRecord(other)
	if err != nil {
		return fmt.Errorf("record an event: %w", err)
	}
	return errors.Join(s.gpu.StreamWaitEvent(stream, e), s.gpu.EventDestroy(e))
}

// close destroys the streams once they have done their work.
func (s *streams) close() error {
	errs := []error{s.gpu.Synchronize()}
	for _, stream := range s.all {
		errs = append(errs, s.gpu.StreamDestroy(stream))
	}
	if s.scratch != 0 {
		errs = append(errs, s.gpu.MemFree(s.scratch))
	}
	return errors.Join(errs...)
}
