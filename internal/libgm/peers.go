package main

import (
	"errors"
	"fmt"

	"gm/internal/cuda/driver"
)

// peer is a device that can give other devices access to its memory.
type peer interface {
	// Peers makes memory that is mapped from now on accessible to these devices as well, as far as they can reach it.
	Peers(ordinals []int) error
}

// share makes the memory of a device, present and future, accessible to others, as that from cuMemAlloc is once peer access is enabled.
// The caller holds its lock, or the device is not open yet.
func (g *gpu) share(ordinals []int) {
	if err := g.meter.share(ordinals); err != nil {
		g.complain("give other devices access", err)
	}
}

func (m *meter) share(ordinals []int) error {
	shared, ok := m.Device.(peer)
	if !ok {
		return nil
	}
	if err := shared.Peers(ordinals); err != nil {
		return err
	}
	var errs []error
	for p, x := range m.mapped {
		if err := m.SetAccess(p, x.size); err != nil {
			errs = append(errs, fmt.Errorf("%d bytes at %#x: %w", x.size, p, err))
		}
	}
	return errors.Join(errs...)
}

var _ peer = (*driver.Device)(nil)
