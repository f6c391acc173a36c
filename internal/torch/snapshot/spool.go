package snapshot

import (
	"fmt"
	"os"

	"gm/internal/unnamed"
)

const (
	spoolMemory = 64 << 20 // bytes of packed records that all spools together keep in memory
	firstChunk  = 4 << 10
	chunkSize   = 64 << 10
)

// spool keeps the records of one device, packed: in memory as long as there is room, then in a temporary file.
type spool struct {
	room   *int // bytes that the spools of an import may still take
	chunks [][]byte
	held   int      // capacity of the chunks
	file   *os.File // nil until needed; without a name
	size   int64    // bytes in it
	prev   record
	count  int64 // records
}

// append adds a record.
func (s *spool) append(r record) error {
	last := len(s.chunks) - 1
	if last < 0 || cap(s.chunks[last])-len(s.chunks[last]) < maxRecord {
		if err := s.grow(); err != nil {
			return fmt.Errorf("spool events: %w", err)
		}
		last = len(s.chunks) - 1
	}
	s.chunks[last] = r.pack(s.chunks[last], &s.prev)
	s.prev = r
	s.count++
	return nil
}

// grow makes room for a record.
func (s *spool) grow() error {
	size := chunkSize
	if len(s.chunks) == 0 {
		size = firstChunk
	}
	if *s.room < size && len(s.chunks) > 0 {
		if err := s.spill(); err != nil {
			return err
		}
	}
	s.chunks = append(s.chunks, make([]byte, 0, size))
	s.held += size
	*s.room -= size
	return nil
}

// spill writes the chunks to the file.
func (s *spool) spill() error {
	if s.file == nil {
		f, err := unnamed.Open("")
		if err != nil {
			return err
		}
		s.file = f
	}
	for _, chunk := range s.chunks {
		n, err := s.file.Write(chunk)
		s.size += int64(n)
		if err != nil {
			return err
		}
	}
	*s.room += s.held
	s.chunks, s.held = nil, 0
	return nil
}

// close gives up the records, and the room that they took.
func (s *spool) close() error {
	*s.room += s.held
	s.chunks, s.held = nil, 0
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// cursor reads a spool from its start.
type cursor struct {
	spool *spool
	rec   record // the current one
	buf   []byte
	space []byte
	read  int64 // bytes of the file
	chunk int   // chunks
}

// next moves to the next record; false at the end.
func (c *cursor) next() (bool, error) {
	if len(c.buf) < maxRecord {
		if err := c.fill(); err != nil {
			return false, fmt.Errorf("read spooled events: %w", err)
		}
		if len(c.buf) == 0 {
			return false, nil
		}
	}
	rest, err := c.rec.unpack(c.buf)
	if err != nil {
		return false, fmt.Errorf("read spooled events: %w", err)
	}
	c.buf = rest
	return true, nil
}

func (c *cursor) fill() error {
	if left := c.spool.size - c.read; left > 0 {
		if c.space == nil {
			c.space = make([]byte, chunkSize)
		}
		n := copy(c.space, c.buf)
		m, err := c.spool.file.ReadAt(c.space[n:min(int64(len(c.space)), int64(n)+left)], c.read)
		if err != nil {
			return err
		}
		c.read += int64(m)
		c.buf = c.space[:n+m]
		return nil
	}
	if len(c.buf) == 0 && c.chunk < len(c.spool.chunks) {
		c.buf = c.spool.chunks[c.chunk]
		c.chunk++
	}
	return nil
}
