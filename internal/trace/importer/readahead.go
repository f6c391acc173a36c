package importer

import "io"

const (
	readBlock  = 256 << 10
	readBlocks = 4
)

// readAhead reads in a goroutine of its own, so that decompression and decoding overlap.
type readAhead struct {
	full  chan readResult
	empty chan []byte
	done  chan struct{}
	block []byte // that Read returns bytes of
	rest  []byte // the rest of it
	err   error
}

type readResult struct {
	block []byte
	err   error
}

func newReadAhead(r io.Reader) *readAhead {
	a := &readAhead{
		full:  make(chan readResult, readBlocks),
		empty: make(chan []byte, readBlocks),
		done:  make(chan struct{}),
	}
	for range readBlocks {
		a.empty <- make([]byte, readBlock)
	}
	go a.run(r)
	return a
}

func (a *readAhead) run(r io.Reader) {
	for {
		var block []byte
		select {
		case block = <-a.empty:
		case <-a.done:
			return
		}
		block = block[:readBlock]
		n, err := 0, error(nil)
		for n < len(block) && err == nil {
			var m int
			m, err = r.Read(block[n:])
			n += m
		}
		// This never waits: the channel has room for all blocks.
		a.full <- readResult{block[:n], err}
		if err != nil {
			return
		}
	}
}

// Read implements io.Reader.
func (a *readAhead) Read(p []byte) (int, error) {
	for len(a.rest) == 0 {
		if a.err != nil {
			return 0, a.err
		}
		if a.block != nil {
			a.empty <- a.block
		}
		next := <-a.full
		a.block, a.rest, a.err = next.block, next.block, next.err
	}
	n := copy(p, a.rest)
	a.rest = a.rest[n:]
	return n, nil
}

// stop ends the goroutine after its current read.
func (a *readAhead) stop() { close(a.done) }
