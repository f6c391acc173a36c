// Package units parses and formats quantities in the way people write them.
package units

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Bytes is a size. As text it is a number and a unit: B, K, M, G and T, alone or as Ki and KiB and so on, are powers of 1024;
// KB, MB, GB and TB are powers of 1000.
type Bytes int64

var byteUnits = map[string]float64{
	"": 1, "b": 1,
	"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40,
	"ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30, "ti": 1 << 40,
	"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40,
	"kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12,
}

// ParseBytes parses a size such as 40GiB, 512M, 1.5 GB or 4096.
func ParseBytes(text string) (Bytes, error) {
	cut := strings.LastIndexAny(text, "0123456789.") + 1
	number, err := strconv.ParseFloat(strings.TrimSpace(text[:cut]), 64)
	unit, known := byteUnits[strings.ToLower(strings.TrimSpace(text[cut:]))]
	if err != nil || !known || number < 0 {
		return 0, fmt.Errorf("%q is not a size such as 40GiB or 512M", text)
	}
	if number *= unit; number > math.MaxInt64/2 {
		return 0, fmt.Errorf("%q is too large", text)
	}
	if unit <= 1 && number != math.Trunc(number) {
		return 0, fmt.Errorf("%q is not a whole number of bytes", text)
	}
	return Bytes(math.Round(number)), nil
}

// leastBare is the least amount of memory that is taken without a unit: below it, the unit was most likely forgotten.
const leastBare = 1 << 20

// ParseAmount parses an amount of memory. It is ParseBytes but for small numbers without a unit, which it refuses: 40 is hardly 40 bytes.
func ParseAmount(text string) (Bytes, error) {
	bare, err := strconv.ParseFloat(text, 64)
	if err == nil && bare > 0 && bare < leastBare && strings.Trim(text, "0123456789.") == "" {
		return 0, fmt.Errorf("%s bytes? Write %[1]sGiB or %[1]sMiB, or %[1]sB for bytes", text)
	}
	return ParseBytes(text)
}

// UnmarshalText implements encoding.TextUnmarshaler for flags with amounts of memory. It refuses 0, which stands for a flag that is not set.
func (b *Bytes) UnmarshalText(text []byte) (err error) {
	if *b, err = ParseAmount(string(text)); err == nil && *b == 0 {
		err = fmt.Errorf("%q: expected more than 0 bytes", text)
	}
	return err
}

// Few is a size of which a few bytes make sense, such as an alignment.
type Few Bytes

// UnmarshalText implements encoding.TextUnmarshaler for flags. It refuses 0, which stands for a flag that is not set.
func (f *Few) UnmarshalText(text []byte) error {
	b, err := ParseBytes(string(text))
	if err == nil && b == 0 {
		err = fmt.Errorf("%q: expected more than 0 bytes", text)
	}
	*f = Few(b)
	return err
}

// Unit returns the largest power of 1024 that is not above the size, and its name.
func (b Bytes) Unit() (float64, string) {
	unit, power := 1.0, 0
	for math.Abs(float64(b)) >= 1024*unit && power < len(unitNames)-1 {
		unit *= 1024
		power++
	}
	return unit, unitNames[power]
}

var unitNames = [...]string{"B", "KiB", "MiB", "GiB", "TiB"}

// String formats the size in the unit of Unit, with up to four digits.
func (b Bytes) String() string {
	unit, name := b.Unit()
	x := float64(b) / unit
	switch {
	case x == math.Trunc(x):
		return fmt.Sprintf("%.0f %s", x, name)
	case math.Abs(x) >= 99.995:
		return fmt.Sprintf("%.1f %s", x, name)
	}
	return fmt.Sprintf("%.2f %s", x, name)
}
