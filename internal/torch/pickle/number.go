package pickle

import (
	"encoding/binary"
	"math"
	"math/big"
	"math/bits"
	"strconv"
)

func (d *Decoder) pushInt(n int64) error {
	if n >= -maxInline-1 && n <= maxInline {
		return d.push(makeValue(Int, uint64(n)&payloadMask))
	}
	if n < 0 {
		return d.pushWide(integer{magnitude: -uint64(n), negative: true})
	}
	return d.pushWide(integer{magnitude: uint64(n)})
}

func (d *Decoder) pushWide(n integer) (err error) {
	if d.wide, err = add(d, d.wide, n); err != nil {
		return err
	}
	return d.push(makeValue(wide, uint64(len(d.wide)-1)))
}

func (d *Decoder) pushFloat(f float64) (err error) {
	if d.floats, err = add(d, d.floats, f); err != nil {
		return err
	}
	return d.push(makeValue(Float, uint64(len(d.floats)-1)))
}

func (d *Decoder) pushBinFloat() error {
	b, err := d.in.take(8)
	if err != nil {
		return d.cut(err)
	}
	return d.pushFloat(math.Float64frombits(binary.BigEndian.Uint64(b)))
}

// pushLong reads an integer of n bytes, little endian, in two's complement.
func (d *Decoder) pushLong(n uint64) error {
	if n <= 8 {
		u, err := d.arg(int(n))
		if err != nil {
			return err
		}
		shift := 64 - 8*uint(n)
		return d.pushInt(int64(u<<shift) >> shift)
	}
	// Of a longer one only the lowest eight bytes are kept. The others must all repeat the sign, else the value is out
	// of range; the highest of the eight need not, for the ninth does.
	var low [8]byte
	kept, last := 0, byte(0)
	zeros, ones := true, true
	err := d.in.bytes(n, func(part []byte) {
		m := copy(low[kept:], part)
		kept += m
		for _, b := range part[m:] {
			zeros, ones = zeros && b == 0, ones && b == 0xff
		}
		last = part[len(part)-1]
	})
	if err != nil {
		return d.cut(err)
	}
	u := binary.LittleEndian.Uint64(low[:])
	if last < 0x80 {
		return d.pushMagnitude(u, false, !zeros)
	}
	return d.pushMagnitude(-u, true, !ones || u == 0) // -2^64 has a magnitude of 65 bits
}

func (d *Decoder) pushMagnitude(u uint64, negative, over bool) error {
	if !over && bits.Len64(u) < payloadBits {
		n := int64(u)
		if negative {
			n = -n
		}
		return d.pushInt(n)
	}
	return d.pushWide(integer{magnitude: u, negative: negative, over: over})
}

// pushDecimal pushes an integer that is written out, as protocol 0 does.
func (d *Decoder) pushDecimal(digits string) error {
	if n, err := strconv.ParseInt(digits, 10, 64); err == nil {
		return d.pushInt(n)
	}
	n, ok := new(big.Int).SetString(digits, 10)
	if !ok {
		return d.fail("%q is no integer", digits)
	}
	over := n.BitLen() > 64
	negative := n.Sign() < 0
	var u uint64
	if !over {
		u = n.Abs(n).Uint64()
	}
	return d.pushMagnitude(u, negative, over)
}
