package pickle

import "io"

const bufferSize = 256 << 10

// input is a buffered reader that hands out slices of its buffer.
type input struct {
	r          io.Reader
	buf        []byte
	pos, end   int
	base       int64 // offset of buf[0]
	start      int64 // offset of the opcode being decoded
	emptyReads int
}

func (in *input) offset() int64 { return in.base + int64(in.pos) }
func (in *input) mark()         { in.start = in.base + int64(in.pos) }

func (in *input) byte() (byte, error) {
	if in.pos < in.end {
		b := in.buf[in.pos]
		in.pos++
		return b, nil
	}
	b, err := in.take(1)
	if err != nil {
		return 0, err
	}
	return b[0], nil
}

// take returns the next n bytes, at most the size of the buffer. They are valid until the next call.
func (in *input) take(n int) ([]byte, error) {
	if in.end-in.pos < n {
		if err := in.fill(n); err != nil {
			return nil, err
		}
	}
	b := in.buf[in.pos : in.pos+n]
	in.pos += n
	return b, nil
}

// fill reads until n bytes are in the buffer.
func (in *input) fill(n int) error {
	copy(in.buf, in.buf[in.pos:in.end])
	in.base += int64(in.pos)
	in.end -= in.pos
	in.pos = 0
	for in.end < n {
		m, err := in.r.Read(in.buf[in.end:])
		in.end += m
		if in.end >= n {
			return nil
		}
		if err != nil {
			return err
		}
		if m > 0 {
			in.emptyReads = 0
		} else if in.emptyReads++; in.emptyReads > 100 {
			return io.ErrNoProgress
		}
	}
	return nil
}

// bytes calls f with the next n bytes, in parts.
func (in *input) bytes(n uint64, f func(part []byte)) error {
	for n > 0 {
		part, err := in.take(int(min(n, bufferSize/2)))
		if err != nil {
			return err
		}
		f(part)
		n -= uint64(len(part))
	}
	return nil
}

// line returns the bytes up to the next newline, without it: at most limit bytes, and false when there are more.
func (in *input) line(limit int) ([]byte, bool, error) {
	var long []byte
	for {
		for i := in.pos; i < in.end; i++ {
			if in.buf[i] == '\n' {
				part := in.buf[in.pos:i]
				in.pos = i + 1
				if long == nil {
					return part, true, nil
				}
				return append(long, part...), true, nil
			}
		}
		long = append(long, in.buf[in.pos:in.end]...)
		if len(long) > limit {
			return nil, false, nil
		}
		in.pos = in.end
		if err := in.fill(1); err != nil {
			return nil, false, err
		}
	}
}
