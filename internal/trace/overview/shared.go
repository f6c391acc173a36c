package overview

import (
	"sync"

	"gm/internal/trace/iterations"
)

// Shared reads traces of processes that may do the same, such as the ranks of a job, from any goroutine. The search for iterations takes more
// than half of the time to read a trace: it is done once for each sequence of requests. The zero Shared is ready.
type Shared struct{ found sync.Map }

// sequence tells sequences of requests apart.
type sequence struct {
	requests uint64 // digest
	count    int
}

// find returns the iterations in requests with a digest. They depend on nothing else: not on the handles of streams.
func (s *Shared) find(r *requests, digest uint64) []iterations.Span {
	key := sequence{digest, len(r.sizes)}
	if found, ok := s.found.Load(key); ok {
		return found.([]iterations.Span)
	}
	found := iterations.Find(r.sizes, r.streams, r.live)
	s.found.Store(key, found)
	return found
}
