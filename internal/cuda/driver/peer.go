package driver

// #include "driver.h"
import "C"

import (
	"fmt"

	"gm/internal/cuda"
)

// Peer is another GPU whose memory a device reaches. It has no context of its own: only its memory is used.
type Peer struct {
	of     *Device
	device C.int
}

// Peer returns the GPU with an ordinal as a peer of this one.
func (d *Device) Peer(ordinal int) (*Peer, error) {
	got := C.gm_device_get(d.library.c, C.int(ordinal))
	if err := d.library.check(got); err != nil {
		return nil, fmt.Errorf("driver: peer %d: %w", ordinal, err)
	}
	p := &Peer{d, C.int(got.value[0])}
	can := C.gm_device_can_access(d.library.c, d.c.device, p.device)
	if err := d.library.check(can); err != nil {
		return nil, fmt.Errorf("driver: peer %d: %w", ordinal, err)
	}
	if can.value[0] == 0 {
		return nil, fmt.Errorf("device %d cannot reach the memory of device %d", int(d.c.device), ordinal)
	}
	return p, nil
}

// PCIBusID returns the peer's PCI address (cuDeviceGetPCIBusId).
func (p *Peer) PCIBusID() (string, error) { return p.of.library.pciBusID(p.device) }

// Create makes size bytes of the peer's physical memory, a multiple of cuda.Granularity, for addresses of the device (cuMemCreate).
func (p *Peer) Create(size int64) (cuda.Handle, error) {
	return p.of.create(p.device, size, C.GM_SHARE_NONE)
}
