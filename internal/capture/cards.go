package capture

import (
	"fmt"
	"time"

	"gm/internal/capture/ring"
	"gm/internal/nvml"
)

const (
	samplePeriod = 100 * time.Millisecond
	sampleMemory = 600 // samples kept of a card: one minute
)

// cards samples the memory in use on each GPU, as NVML reports it.
type cards struct {
	library *nvml.Library
	cards   map[string]*card // by UUID
	last    time.Time
}

// card is a GPU.
type card struct {
	device  *nvml.Device
	samples []sample // the latest
}

// sample is the memory in use on a card at a time, in bytes.
type sample struct {
	at   uint64 // ring.Monotonic
	used int64
}

// openCards opens NVML. Without a GPU it returns an error and an empty, usable value.
func openCards() (*cards, error) {
	c := &cards{cards: map[string]*card{}}
	library, err := nvml.Open()
	if err != nil {
		return c, err
	}
	c.library = library
	devices, err := library.Devices()
	for _, d := range devices {
		c.cards[d.UUID] = &card{device: d}
	}
	c.sample(time.Now())
	return c, err
}

func (c *cards) close() error {
	if c.library == nil {
		return nil
	}
	return c.library.Close()
}

// due reports whether it is time for the next sample.
func (c *cards) due(now time.Time) bool { return c.library != nil && now.Sub(c.last) >= samplePeriod }

// sample samples all cards.
func (c *cards) sample(now time.Time) {
	c.last = now
	for _, card := range c.cards {
		used, err := card.device.Used()
		if err != nil {
			continue // a card may fall off the bus; the traced program will report it
		}
		if len(card.samples) == sampleMemory {
			card.samples = card.samples[:copy(card.samples, card.samples[1:])]
		}
		card.samples = append(card.samples, sample{ring.Monotonic(), used})
	}
}

// find returns the card with the UUID of a CUDA device; nil if NVML does not know it. MIG instances are found only by their UUID.
func (c *cards) find(uuid [16]byte) *card {
	if c.library == nil {
		return nil
	}
	text := fmt.Sprintf("%x-%x-%x-%x-%x", uuid[:4], uuid[4:6], uuid[6:8], uuid[8:10], uuid[10:])
	for _, prefix := range []string{"GPU-", "MIG-"} {
		if card := c.cards[prefix+text]; card != nil {
			return card
		}
		if d, err := c.library.Device(prefix + text); err == nil {
			c.cards[d.UUID] = &card{device: d}
			return c.cards[d.UUID]
		}
	}
	return nil
}

// asker is the cardReader of one process.
type asker struct {
	cards *cards
	pid   int
}

// contextSize implements cardReader. It returns used minus the last sample before the context was begun. Where other processes took
// memory in between, that is too much; it is bounded by what the process holds beyond traced bytes, where NVML reports that.
func (a asker) contextSize(uuid [16]byte, began uint64, used, traced int64) int64 {
	card := a.cards.find(uuid)
	if card == nil {
		return 0
	}
	for i := len(card.samples) - 1; i >= 0; i-- {
		s := card.samples[i]
		if s.at > began {
			continue
		}
		size := used - s.used
		if all, ok := card.device.ProcessUsed(a.pid); ok {
			size = min(size, all-traced)
		}
		return max(size, 0)
	}
	return 0
}

// processSamples are the last values recorded for a process on a device, in bytes.
type processSamples struct{ process, card int64 }

// compare calls tell for each sample of a process and of its cards that differs from the last.
func (c *cards) compare(pid int, devices map[int32]device, last map[int32]processSamples, tell func(device int32, whose uint64, used int64)) {
	for ordinal, d := range devices {
		card := c.find(d.uuid)
		if card == nil || len(card.samples) == 0 {
			continue
		}
		s := card.samples[len(card.samples)-1]
		now := last[ordinal]
		if used, ok := card.device.ProcessUsed(pid); ok && used != now.process {
			now.process = used
			tell(max(ordinal, 0), sampleProcess, used)
		}
		if s.used != now.card {
			now.card = s.used
			tell(max(ordinal, 0), sampleCard, s.used)
		}
		last[ordinal] = now
	}
}
