package columntest

import (
	"encoding/binary"
	"math/rand/v2"
	"reflect"
)

// Mutate returns a damaged copy of a small valid file: bits flipped anywhere or in the footer, the end cut off, bytes
// overwritten by extreme ones, or a number of the footer replaced by another.
func Mutate(rng *rand.Rand, file []byte) []byte {
	switch rng.IntN(5) {
	case 0:
		return file[:rng.IntN(len(file))]
	case 1:
		return flip(rng, file, 0)
	case 2:
		return flip(rng, file, footerStart(file))
	case 3:
		return overwrite(rng, file)
	default:
		return renumber(rng, file)
	}
}

func footerStart(file []byte) int {
	end := len(file) - len(magic) - 4
	return end - int(binary.LittleEndian.Uint32(file[end:]))
}

// flip changes one to four bits after from.
func flip(rng *rand.Rand, file []byte, from int) []byte {
	out := append([]byte(nil), file...)
	for range 1 + rng.IntN(4) {
		out[from+rng.IntN(len(out)-from)] ^= 1 << rng.IntN(8)
	}
	return out
}

// overwrite replaces some consecutive bytes.
func overwrite(rng *rand.Rand, file []byte) []byte {
	out := append([]byte(nil), file...)
	at := rng.IntN(len(out))
	value := []byte{0, 1, 0x7f, 0x80, 0xff, byte(rng.Uint32())}[rng.IntN(6)]
	for i := range out[at:min(len(out), at+1+rng.IntN(10))] {
		out[at+i] = value
	}
	return out
}

// renumber replaces one integer of the footer and encodes it again.
func renumber(rng *rand.Rand, file []byte) []byte {
	footer, err := Footer(file)
	if err != nil {
		panic(err)
	}
	var numbers []reflect.Value
	collect(reflect.ValueOf(footer).Elem(), &numbers)
	v := numbers[rng.IntN(len(numbers))]
	old := v.Int()
	extremes := []int64{0, -1, 1, old + 1, old - 1, old * 2, 1 << 20, 1 << 31, 1 << 40, 1<<63 - 1, -1 << 63, rng.Int64()}
	v.SetInt(extremes[rng.IntN(len(extremes))])
	out, err := WithFooter(file[:footerStart(file)], footer)
	if err != nil {
		panic(err)
	}
	return out
}

// collect lists the settable integers in v.
func collect(v reflect.Value, numbers *[]reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			collect(v.Field(i), numbers)
		}
	case reflect.Slice:
		for i := range v.Len() {
			collect(v.Index(i), numbers)
		}
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		if v.CanSet() {
			*numbers = append(*numbers, v)
		}
	}
}
