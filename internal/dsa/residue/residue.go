// Package residue computes with residue classes: the numbers that leave a given remainder when they are divided by a step. The offsets that
// an alignment allows are one.
package residue

import (
	"math"
	"math/bits"
)

// Class is the numbers that leave a remainder when they are divided by a step.
type Class struct {
	Step, Remainder int64 // 0 <= Remainder < Step
}

// And returns the numbers in both classes. ok is false when there are none, or the step does not fit an int64.
func (c Class) And(d Class) (both Class, ok bool) {
	g := Gcd(c.Step, d.Step)
	if (d.Remainder-c.Remainder)%g != 0 || c.Step/g > math.MaxInt64/d.Step {
		return Class{}, false
	}
	// Of c.rest + n*c.step, take the n that d allows.
	m := d.Step / g
	n := mulMod(Mod((d.Remainder-c.Remainder)/g, m), inverse(c.Step/g, m), m)
	return Class{c.Step * m, c.Remainder + n*c.Step}, true
}

// AtLeast returns the least number of the class that is not below x, for x up to one step below the greatest int64.
func (c Class) AtLeast(x int64) int64 {
	if c.Step == 1 {
		return x
	}
	return x + Mod(c.Remainder-x, c.Step)
}

// AtMost returns the greatest number of the class that is not above x.
func (c Class) AtMost(x int64) int64 {
	if c.Step == 1 {
		return x
	}
	return x - Mod(x-c.Remainder, c.Step)
}

func Gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// Mod returns the remainder of a divided by m, which is never negative.
func Mod(a, m int64) int64 {
	if a %= m; a < 0 {
		a += m
	}
	return a
}

// mulMod returns the product of two numbers in [0, m) modulo m.
func mulMod(a, b, m int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	return int64(bits.Rem64(hi, lo, uint64(m)))
}

// inverse returns the inverse of a modulo m. They have no common divisor.
func inverse(a, m int64) int64 {
	x, next := int64(0), int64(1)
	for r, s := m, Mod(a, m); s != 0; {
		q := r / s
		r, s = s, r-q*s
		x, next = next, x-q*next
	}
	return Mod(x, m)
}
