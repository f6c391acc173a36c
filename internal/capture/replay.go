package capture

import (
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"gm/formats/trace"
	"gm/internal/capture/ring"
)

const batchRows = 16 << 10

// replay produces the driver's rows of a process again, from its journal and the records that are not in the journal yet.
type replay struct {
	rows        rows
	interpreter *interpreter
	frames      *frames
	unpacker    *zstd.Decoder
	messages    []byte // of the current frame, still to interpret
	pending     []byte // after the last frame
	unpacked    []byte
	short       bool // the journal's file is shorter than what was written
	size        int64
}

// replay starts a replay of the records so far. The caller must close it.
func (p *process) replay() (*replay, error) {
	unpacker, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxFrame))
	if err != nil {
		return nil, fmt.Errorf("read records: %w", err)
	}
	r := &replay{rows: newRows(), unpacker: unpacker, frames: &frames{}}
	r.interpreter = newInterpreter(&r.rows, nil)
	r.interpreter.symbols = p.interpreter.symbols // it knows the names of libraries that were unloaded since
	if p.journal != nil {
		if r.frames, err = openFrames(p.journal.name); err != nil {
			return nil, err
		}
		r.pending, r.size = p.journal.pending, p.journal.size
	}
	return r, nil
}

// next returns the next rows, which are valid until the next call; io.EOF when there are no more.
func (r *replay) next() (*trace.Batch, error) {
	r.rows.batch.Reset()
	for r.rows.batch.Len() < batchRows {
		if len(r.messages) == 0 {
			more, err := r.load()
			if err != nil {
				return nil, err
			}
			if !more {
				break
			}
			continue
		}
		var rec ring.Record
		rest, err := takeMessage(r.messages, &rec)
		if err != nil {
			return nil, fmt.Errorf("read records: %w", err)
		}
		r.messages = rest
		r.interpreter.take(&rec)
	}
	if r.rows.batch.Len() == 0 {
		return nil, io.EOF
	}
	return &r.rows.batch, nil
}

// load reads the next messages, and reports whether there are more.
func (r *replay) load() (bool, error) {
	f, err := r.frames.next()
	switch {
	case errors.Is(err, io.EOF):
		r.short = r.short || r.frames.at < r.size
		r.messages, r.pending = r.pending, nil
		return len(r.messages) > 0, nil
	case err != nil:
		return false, err
	case f.kind != frameMessages:
		return true, nil
	}
	if r.unpacked, err = r.unpacker.DecodeAll(f.content, r.unpacked[:0]); err != nil {
		return false, fmt.Errorf("read records: %w", err)
	}
	r.messages = r.unpacked
	return true, nil
}

func (r *replay) close() error {
	r.unpacker.Close()
	return r.frames.close()
}
