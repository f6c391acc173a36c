package capture

import (
	"fmt"
	"os"
	"path/filepath"

	"gm/formats/trace"
	"gm/internal/capture/live"
)

const batchRows = 16 << 10

// spool keeps the rows of a process's driver level, as a trace in a file without a name, until they are merged.
type spool struct {
	file  *os.File
	out   *trace.Writer
	batch trace.Batch
	last  int64        // time of the last row
	live  *live.Driver // account of them
}

func newSpool(folder string) (*spool, error) {
	f, err := os.CreateTemp(folder, "driver.*")
	if err != nil {
		return nil, fmt.Errorf("spool rows: %w", err)
	}
	// Without a name it goes away with this process, however that ends.
	if err := os.Remove(f.Name()); err != nil {
		return nil, fmt.Errorf("spool rows: %w", err)
	}
	out := trace.NewWriter(f, trace.Meta{})
	return &spool{file: f, out: out, live: live.NewDriver(out.Strings())}, nil
}

// row implements rowWriter. Threads take their times before their turns, so times may run backwards a little: they are held.
func (s *spool) row(e trace.Event, tag, pool, stack string) error {
	text := s.out.Strings()
	e.Tag, e.Pool, e.Stack = text.Code(tag), text.Code(pool), text.Code(stack)
	e.TimeNS = max(e.TimeNS, s.last)
	s.last = e.TimeNS
	s.live.Add(&e)
	s.batch.Append(e)
	if s.batch.Len() < batchRows {
		return nil
	}
	return s.flush()
}

func (s *spool) flush() error {
	err := s.out.Write(&s.batch)
	s.batch.Reset()
	if err != nil {
		return fmt.Errorf("spool rows: %w", err)
	}
	return nil
}

// read ends the spool and returns its rows.
func (s *spool) read() (*trace.Reader, error) {
	if err := s.flush(); err != nil {
		return nil, err
	}
	if err := s.out.Close(); err != nil {
		return nil, fmt.Errorf("spool rows: %w", err)
	}
	info, err := s.file.Stat()
	if err != nil {
		return nil, fmt.Errorf("spool rows: %w", err)
	}
	return trace.NewReader(s.file, info.Size(), filepath.Base(s.file.Name()))
}

func (s *spool) close() error { return s.file.Close() }
