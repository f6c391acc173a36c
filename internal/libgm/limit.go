package main

import (
	"fmt"

	"gm/internal/cuda"
)

// setLimit bounds what may ever be taken from the device, in bytes: GM_LIMIT, which gmstitch run --limit sets. 0 leaves all of the device.
func (m *meter) setLimit(bytes int64) {
	if bytes > 0 {
		m.most = min(bytes, m.total)
		m.limit = m.most
	}
}

// setFraction bounds what is taken to a share of the device. It cannot exceed the limit of setLimit.
func (m *meter) setFraction(fraction float64) {
	m.limit = min(int64(min(max(fraction, 0), 1)*float64(m.total)), m.most)
}

// room returns an error if size more bytes would exceed the limit. MemAlloc and Create call it first.
func (m *meter) room(size int64) error {
	if size > m.limit-m.reserved() {
		return fmt.Errorf("%w: %d bytes asked, %d taken of the %d allowed", cuda.ErrOutOfMemory, size, m.reserved(), m.limit)
	}
	return nil
}

// MemInfo implements cuda.Device. It reports at most what the limit leaves as free.
func (m *meter) MemInfo() (free, total int64, err error) {
	free, total, err = m.Device.MemInfo()
	return max(min(free, m.limit-m.reserved()), 0), total, err
}
