// Package residue computes with residue classes: the numbers that leave a given remainder when they are divided by a step. The offsets that
// an alignment allows are one.
package residue

import (
	"math"
	"math/bits"
)

// Class stands for the numbers that leave a rest when they are divided by a step.
type Class struct {
	Step, Remainder int64 // 0 <= rest < step
}

// And returns the numbers in both; ok is false when there are none, or the step is more than an int64 holds.
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

// AtLeast returns the least of the numbers that is not below x, for x up to a step below the greatest int64.
func (c Class) AtLeast(x int64) int64 {
	if c.Step == 1 {
		return x
	}
	return x + Mod(c.Remainder-x, c.Step)
}

// AtMost returns the greatest of the numbers that is not above x.
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

// Mod returns the rest of a divided by m, not negative.
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

// inverse returns the number whose product with a is 1 modulo m, for a that has no divisor in common with m.
func inverse(a, m int64) int64 {
	x, next := int64(0), int64(1)
	for r, s := m, Mod(a, m); s != 0; {
		q := r / s
		r, s = s, r-q*s
		x, next = next, x-q*next
	}
	return Mod(x, m)
}
