package engine

import (
	"strings"
	"testing"

	"gm/internal/swap/host"
)

// TestAllowance has two engines pin memory up to what they may have together. What one has unpinned is the other's.
func TestAllowance(t *testing.T) {
	page := host.Page()
	shared := NewAllowance(10 * page)
	o := Options{Budget: 8 * page, Chunk: 2 * page, Allowance: shared}
	a, b := newProgram(t, 1, o), newProgram(t, 2, o)
	grow := func(p *program, chunks int) {
		t.Helper()
		for range chunks {
			if more, err := p.e.Grow(); !more || err != nil {
				t.Fatal(more, err)
			}
		}
	}
	grow(a, 3)
	grow(b, 2)
	if _, err := b.e.Grow(); err != ErrAllowance {
		t.Errorf("beyond the allowance: %v", err)
	}
	b.e.Expect(8 * page)
	b.e.ahead.working.Wait()
	if taken := resident(t, b.e.memory.Bytes()); taken != 4 {
		t.Errorf("%d pages are taken ahead, want those of 2 chunks", taken)
	}
	if _, err := b.e.Out(base, 5*page, b.streams[0]); err == nil || len(b.lines) != 1 || !strings.HasSuffix(b.lines[0], ErrAllowance.Error()) {
		t.Errorf("out of more than is left: %v, %q", err, b.lines)
	}
	ahead := newProgram(t, 3, Options{Budget: 20 * page, Chunk: 2 * page, Allowance: NewAllowance(10 * page)})
	other := newProgram(t, 4, Options{Budget: 20 * page, Chunk: 2 * page, Allowance: ahead.e.allowance})
	for _, p := range []*program{ahead, other} {
		p.e.Expect(7 * page)
		p.e.ahead.working.Wait()
	}
	if first, second := resident(t, ahead.e.memory.Bytes()), resident(t, other.e.memory.Bytes()); first != 7 || second != 3 {
		t.Errorf("%d and %d pages are taken ahead of 10", first, second)
	}
	grow(other, 1)
	ahead.finish()
	other.finish()
	if left := ahead.e.allowance.most(100 * page); left != 10*page {
		t.Errorf("%d bytes are left of what was taken ahead, want %d", left, 10*page)
	}
	a.finish()
	if left := shared.most(100 * page); left != 6*page {
		t.Errorf("%d bytes are left where one engine is closed, want %d", left, 6*page)
	}
	b.finish()
	if left := shared.most(100 * page); left != 10*page {
		t.Errorf("%d bytes are left at the end, want %d", left, 10*page)
	}
}
