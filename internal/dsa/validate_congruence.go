package dsa

import (
	"math"
	"math/bits"
)

// congruence stands for the numbers that leave a rest when they are divided by a step.
type congruence struct {
	step, rest int64 // 0 <= rest < step
}

// and returns the numbers in both; ok is false when there are none, or the step is more than an int64 holds.
func (c congruence) and(d congruence) (both congruence, ok bool) {
	g := gcd(c.step, d.step)
	if (d.rest-c.rest)%g != 0 || c.step/g > math.MaxInt64/d.step {
		return congruence{}, false
	}
	// Of c.rest + n*c.step, take the n that d allows.
	m := d.step / g
	n := mulMod(mod((d.rest-c.rest)/g, m), inverse(c.step/g, m), m)
	return congruence{c.step * m, c.rest + n*c.step}, true
}

// atLeast returns the least of the numbers that is not below x, for x up to a step below the greatest int64.
func (c congruence) atLeast(x int64) int64 {
	if c.step == 1 {
		return x
	}
	return x + mod(c.rest-x, c.step)
}

// atMost returns the greatest of the numbers that is not above x.
func (c congruence) atMost(x int64) int64 {
	if c.step == 1 {
		return x
	}
	return x - mod(x-c.rest, c.step)
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// mod returns the rest of a divided by m, not negative.
func mod(a, m int64) int64 {
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
	for r, s := m, mod(a, m); s != 0; {
		q := r / s
		r, s = s, r-q*s
		x, next = next, x-q*next
	}
	return mod(x, m)
}
