package page

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/binary"
	"fmt"
)

// Packer packs lists of numbers for numbers.js, each list behind its length. It is used from its zero value on.
type Packer struct{ buf []byte }

// Numbers packs the differences of numbers as varints in zigzag encoding.
func (p *Packer) Numbers(list []int64) {
	p.buf = binary.AppendUvarint(p.buf, uint64(len(list)))
	last := int64(0)
	for _, n := range list {
		p.buf = binary.AppendVarint(p.buf, n-last)
		last = n
	}
}

// Counts packs numbers from 0 as varints.
func (p *Packer) Counts(list []int64) {
	p.buf = binary.AppendUvarint(p.buf, uint64(len(list)))
	for _, n := range list {
		p.buf = binary.AppendUvarint(p.buf, uint64(n))
	}
}

// Bytes packs bytes unchanged.
func (p *Packer) Bytes(list []byte) {
	p.buf = binary.AppendUvarint(p.buf, uint64(len(list)))
	p.buf = append(p.buf, list...)
}

// Text returns everything packed, deflated, in base64.
func (p *Packer) Text() (string, error) {
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.DefaultCompression)
	if err != nil {
		return "", fmt.Errorf("pack the page's numbers: %w", err)
	}
	if _, err := w.Write(p.buf); err != nil {
		return "", fmt.Errorf("pack the page's numbers: %w", err)
	}
	if err := w.Close(); err != nil {
		return "", fmt.Errorf("pack the page's numbers: %w", err)
	}
	return base64.StdEncoding.EncodeToString(out.Bytes()), nil
}
