package dsa

import (
	"fmt"
	"math"

	"gm/internal/dsa/residue"
)

// Validate returns an error that wraps [ErrInvalid] when the columns differ in length, the alignment is not positive,
// a buffer has a negative size or ends before it starts, or the rounded sizes add up to more than an int64 holds. It also does when
// alignments, fixed offsets and ties contradict one another regardless of lives, when two fixed buffers
// overlap, or when a buffer lives longer than the period.
func (p *Problem) Validate() error {
	if err := p.validateColumns(); err != nil {
		return err
	}
	left := math.MaxInt64 / p.Align // units that an int64 of bytes can still hold
	for i, size := range p.Size {
		if size < 0 {
			return fmt.Errorf("%w: buffer %d has size %d", ErrInvalid, i, size)
		}
		if p.End[i] < p.Start[i] {
			return fmt.Errorf("%w: buffer %d ends at %d, before its start at %d", ErrInvalid, i, p.End[i], p.Start[i])
		}
		if left -= p.Units(i); left < 0 {
			return fmt.Errorf("%w: the sizes up to buffer %d add up to more than an int64 holds", ErrInvalid, i)
		}
	}
	if p.Plain() {
		return nil
	}
	if err := p.validatePeriod(); err != nil {
		return err
	}
	return p.validateOffsets(left)
}

func (p *Problem) validateColumns() error {
	n := len(p.Size)
	if len(p.Start) != n || len(p.End) != n {
		return fmt.Errorf("%w: %d starts, %d ends and %d sizes", ErrInvalid, len(p.Start), len(p.End), n)
	}
	if p.Aligns != nil && len(p.Aligns) != n || p.Fixed != nil && len(p.Fixed) != n {
		return fmt.Errorf("%w: %d alignments, %d fixed offsets and %d sizes", ErrInvalid, len(p.Aligns), len(p.Fixed), n)
	}
	if n > math.MaxInt32-1 {
		return fmt.Errorf("%w: %d buffers, expected at most %d", ErrInvalid, n, math.MaxInt32-1)
	}
	if p.Align < 1 {
		return fmt.Errorf("%w: alignment %d, expected at least 1", ErrInvalid, p.Align)
	}
	return nil
}

// maxPeriod leaves room for an end that is up to one period after a start.
const maxPeriod = math.MaxInt64 / 2

func (p *Problem) validatePeriod() error {
	if p.Period < 0 || p.Period > maxPeriod {
		return fmt.Errorf("%w: period %d, expected 0 to %d", ErrInvalid, p.Period, int64(maxPeriod))
	}
	for i := range p.Start {
		if life := uint64(p.End[i]) - uint64(p.Start[i]); p.Period > 0 && life > uint64(p.Period) {
			return fmt.Errorf("%w: buffer %d lives for %d, longer than the period of %d", ErrInvalid, i, life, p.Period)
		}
	}
	return nil
}

// validateOffsets checks alignments, fixed offsets and ties. Left is the number of units, beyond the sizes, that an int64 of bytes holds.
func (p *Problem) validateOffsets(left int64) error {
	for i := range p.Size {
		if p.Aligns != nil && p.Aligns[i] < 0 {
			return fmt.Errorf("%w: buffer %d has alignment %d", ErrInvalid, i, p.Aligns[i])
		}
		if at := p.fixed(int32(i)); at < Free {
			return fmt.Errorf("%w: buffer %d is fixed at %d", ErrInvalid, i, at)
		}
	}
	g, err := NewGroups(p)
	if err != nil {
		return err
	}
	// Any placement puts each buffer at most a step above the highest end of those before it.
	top := int64(0)
	for k := range g.Step {
		if left -= g.Step[k] - 1; left < 0 {
			return fmt.Errorf("%w: the alignments add up to more than an int64 holds", ErrInvalid)
		}
		if left -= g.height[k]; left < 0 {
			return fmt.Errorf("%w: the distances of tied buffers add up to more than an int64 holds", ErrInvalid)
		}
		if g.Fixed[k] != Free {
			top = max(top, g.Fixed[k])
		}
	}
	if top > left {
		return fmt.Errorf("%w: a buffer is fixed at %d, too far up", ErrInvalid, top*p.Align)
	}
	return p.validateFixed(g)
}

// validateFixed checks that buffers with fixed offsets, their own or through ties, do not overlap.
func (p *Problem) validateFixed(g *Groups) error {
	offsets := make([]int64, p.Len())
	var given []int32
	for i, k := range g.Of {
		if g.Fixed[k] != Free {
			given = append(given, int32(i))
			offsets[i] = (g.Fixed[k] + g.At[i]) * p.Align
		}
	}
	if a, b, found := p.overlap(given, offsets); found {
		return fmt.Errorf("%w: buffers %d and %d are fixed and overlap", ErrInvalid, a, b)
	}
	return nil
}

// fixed returns the fixed offset of a buffer, or [Free].
func (p *Problem) fixed(i int32) int64 {
	if p.Fixed == nil {
		return Free
	}
	return p.Fixed[i]
}

// step returns the step of the offsets that a buffer may have, in units.
func (p *Problem) step(i int32) int64 {
	if p.Aligns == nil || p.Aligns[i] <= 1 {
		return 1
	}
	return p.Aligns[i] / residue.Gcd(p.Aligns[i], p.Align)
}
