package blocks

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"gm/internal/cuda"
)

// pending is an allocator that counts the bytes that other streams still use.
type pending interface {
	Pending() (small, large int64)
}

// TestHoldings drives the allocators of programs with streams that run behind. What each holds adds up to its account: all that is taken, the
// blocks that are handed out, by their address, and those that other streams still use.
func TestHoldings(t *testing.T) {
	seen := map[string]int64{}
	for _, spec := range residents(t) {
		for seed := range uint64(3) {
			t.Run(fmt.Sprint(spec.Text, "/", seed), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(seed, 37))
				dev := newStreams(t, rng, 4, 400<<20)
				a := spec.open(t, dev)
				r := crossing{t: t, rng: rng, dev: dev, a: a, mixed: true}
				for i := range 1500 {
					r.step()
					if i%25 == 0 {
						seen[spec.Text] += checkHoldings(t, a, r.live)
					}
				}
				r.finish()
			})
		}
		if seen[spec.Text] == 0 {
			t.Errorf("%s: no block was ever pending", spec.Text)
		}
	}
}

// checkHoldings compares what an allocator holds with its account, and returns the pending bytes.
func checkHoldings(t *testing.T, a Allocator, live []used) int64 {
	t.Helper()
	var reserved, waits int64
	blocks := map[cuda.Ptr]int64{}
	all := a.Holdings()
	for i := range all {
		h := &all[i]
		reserved, waits = reserved+h.Size, waits+h.Pending
		if h.Free() < 0 {
			t.Fatalf("the holding at %#x of %d bytes: %d pending, %d used", h.Address, h.Size, h.Pending, h.Used())
		}
		for _, u := range h.Uses {
			blocks[u.Block] += u.Bytes
		}
	}
	handed := int64(0)
	for _, b := range live {
		if b.size > 0 && blocks[b.ptr] < b.size {
			t.Fatalf("%d of the %d bytes of the block at %#x are held", blocks[b.ptr], b.size, b.ptr)
		}
		handed += blocks[b.ptr]
		delete(blocks, b.ptr)
	}
	expected, taken := waits, a.Stats().Allocated
	if p, ok := a.(pending); ok {
		small, large := p.Pending()
		expected = small + large
	} else {
		taken = handed // GMLake's account has requests before they are rounded up to chunks
	}
	if s := a.Stats(); reserved != s.Reserved || handed != taken || s.Allocated > handed || waits != expected || len(blocks) != 0 {
		t.Fatalf("held %d bytes, %d in blocks, %d pending, and %d unknown blocks; the account: %+v, %d pending",
			reserved, handed, waits, len(blocks), s, expected)
	}
	return waits
}
