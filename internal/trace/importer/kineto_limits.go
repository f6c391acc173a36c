package importer

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"gm/formats/trace"
)

// The most that is kept of a profile. An import keeps it in memory, in less than 2 GiB.
const (
	maxMoves       = 4 << 20
	maxSpans       = 16 << 20
	maxProfileText = 512 << 20 // bytes of names, and of stacks
	textCost       = 64        // what a text takes beside its bytes
	maxValue       = 64 << 20  // bytes of a value in JSON
)

// full returns an error if more is kept than the limits allow.
func (k *kineto) full() error {
	for _, limit := range []struct {
		n, most int
		what    string
	}{
		{len(k.moves), maxMoves, "events about memory"},
		{k.spans, maxSpans, "operators and functions"},
		{k.text, maxProfileText, "bytes of names"},
	} {
		if limit.n > limit.most {
			return fmt.Errorf("the profile has more than %d %s", limit.most, limit.what)
		}
	}
	return nil
}

// kinetoDecoder decodes JSON whose values are not too large: it holds each in memory.
type kinetoDecoder struct {
	*json.Decoder
	src  io.Reader
	read int // bytes since the last value
}

// Read implements io.Reader for the decoder.
func (d *kinetoDecoder) Read(b []byte) (int, error) {
	if d.read > maxValue {
		return 0, fmt.Errorf("a value of more than %d bytes", maxValue)
	}
	n, err := d.src.Read(b)
	d.read += n
	return n, err
}

// Decode decodes the next value.
func (d *kinetoDecoder) Decode(to any) error {
	d.read = 0
	return d.Decoder.Decode(to)
}

// Token returns the next token.
func (d *kinetoDecoder) Token() (json.Token, error) {
	d.read = 0
	return d.Decoder.Token()
}

// nanoseconds converts microseconds, with up to three digits after the point, exactly.
func nanoseconds(us json.Number) (int64, error) {
	whole, fraction, _ := strings.Cut(string(us), ".")
	if us == "" {
		whole = "0"
	}
	if strings.ContainsAny(string(us), "eE") {
		f, err := strconv.ParseFloat(string(us), 64)
		if err != nil || math.Abs(f) > maxMicros {
			return 0, fmt.Errorf("%.40s is out of range", us)
		}
		return int64(f * nsPerUS), nil
	}
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || n > maxMicros || n < -maxMicros {
		return 0, fmt.Errorf("%.40s is out of range", us)
	}
	part, err := strconv.ParseInt((fraction + "000")[:3], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%.40s is no number", us)
	}
	if strings.HasPrefix(whole, "-") {
		part = -part
	}
	return n*nsPerUS + part, nil
}

const (
	nsPerUS   = 1000
	maxMicros = trace.MaxTime/nsPerUS - 1 // so that a time and a duration add up
)
