package link

import (
	"fmt"
	"time"

	"gm/internal/cuda/cards"
	"gm/internal/units"
)

// Even returns a link on which copies of any size run at a rate in bytes a second, each way, whatever else is copied. The error says why the
// rate is impossible.
func Even(name string, rate int64) (*Link, error) {
	if rate < minRate || rate > maxRate {
		return nil, fmt.Errorf("%s a second, expected %s to %s", units.Bytes(rate), units.Bytes(minRate), units.Bytes(maxRate))
	}
	alone := []Rate{{Bytes: 1 << 20, Out: rate, In: rate, BothOut: rate, BothIn: rate}}
	l := &Link{Schema: Schema, Device: name, GPUs: []GPU{{NUMANode: -1, MemorySlowdown: 1, Alone: alone}}}
	return l, l.check()
}

// Default returns figures for where nothing was measured: those of an H200 by itself.
func Default() *Link {
	measured := cards.H200().Copies
	g := GPU{NUMANode: -1, TouchNS: int64(measured.Touch / time.Nanosecond), RegisterNS: int64(measured.Register / time.Nanosecond), MemorySlowdown: 1}
	for _, c := range measured.Alone {
		g.Alone = append(g.Alone, Rate{Bytes: c.Bytes, In: c.In, Out: c.Out, BothOut: min(c.Out, measured.Both), BothIn: min(c.In, measured.Both)})
	}
	return &Link{Schema: Schema, Device: measured.Product, Driver: measured.Driver, GPUs: []GPU{g}}
}
