package column

import (
	"encoding/binary"
	"errors"
	"fmt"
)

var (
	errRuns  = errors.New("malformed run lengths")
	errDelta = errors.New("malformed deltas")
	errNull  = refuse("has nulls")
)

// maxFill is how many values of padding the last bit-packed run may have: values are packed in groups of 8, by DuckDB
// in groups of 256.
const maxFill = 511

// checkRuns scans Parquet's hybrid of run-length encoding and bit packing. It fails unless there are n values of width
// bits and at most maxFill more. Data that passes is safe to decode.
func checkRuns(src []byte, width int, n int64) error {
	if width > 32 {
		return errRuns
	}
	total := int64(0)
	for len(src) > 0 {
		head, k := binary.Uvarint(src)
		if k <= 0 || head>>1 > MaxValues {
			return errRuns
		}
		src = src[k:]
		count, size := int64(head>>1), (width+7)/8
		if head&1 != 0 {
			size = int(count) * width
			count *= 8
		}
		if size > len(src) {
			return errRuns
		}
		src = src[size:]
		if total += count; total > n+maxFill {
			return errRuns
		}
	}
	if total < n {
		return fmt.Errorf("%d values in a page of %d", total, n)
	}
	return nil
}

// checkDelta scans Parquet's DELTA_BINARY_PACKED encoding. It fails unless there are n values of at most width bits.
// Data that passes is safe to decode. It returns the data that follows.
func checkDelta(src []byte, n int64, width int) (rest []byte, err error) {
	var head [4]uint64 // values of a block, miniblocks of a block, values, first value
	for i := range head {
		v, k := binary.Uvarint(src)
		if k <= 0 {
			return nil, errDelta
		}
		head[i], src = v, src[k:]
	}
	block, minis := head[0], head[1]
	if block == 0 || block > 1<<16 || block%128 != 0 || minis == 0 || minis > block/32 || block/minis%32 != 0 {
		return nil, errDelta
	}
	if head[2] != uint64(n) {
		return nil, fmt.Errorf("%d values in a page of %d", head[2], n)
	}
	for left := n - 1; left > 0; {
		_, k := binary.Uvarint(src) // the least delta
		if k <= 0 || len(src)-k < int(minis) {
			return nil, errDelta
		}
		widths := src[k : k+int(minis)]
		src = src[k+int(minis):]
		for _, bits := range widths {
			if left <= 0 {
				break
			}
			size := int(block/minis) * int(bits) / 8
			if int(bits) > width || size > len(src) {
				return nil, errDelta
			}
			src = src[size:]
			left -= int64(block / minis)
		}
	}
	return src, nil
}

// cutLevels removes the definition levels from the front of a version 1 page of an optional column.
func cutLevels(page []byte, n int64) ([]byte, error) {
	if len(page) < 4 {
		return nil, errRuns
	}
	length := int64(binary.LittleEndian.Uint32(page))
	if length > int64(len(page)-4) {
		return nil, errRuns
	}
	return page[4+length:], checkPresent(page[4:4+length], n)
}

// checkPresent fails unless all n definition levels, of one bit each, say that there is a value.
func checkPresent(src []byte, n int64) error {
	if err := checkRuns(src, 1, n); err != nil {
		return err
	}
	for n > 0 {
		head, k := binary.Uvarint(src)
		src = src[k:]
		count := int64(head >> 1)
		if head&1 == 0 {
			if count > 0 && src[0] != 1 {
				return errNull
			}
			n, src = n-count, src[1:]
			continue
		}
		for _, bits := range src[:count] {
			want := byte(1<<min(n, 8) - 1)
			if n > 0 && bits&want != want {
				return errNull
			}
			n -= 8
		}
		src = src[count:]
	}
	return nil
}
