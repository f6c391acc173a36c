package pickle

import "unsafe"

// budget is what all tables of a decode may take together, in bytes. What is allocated is charged when it is made and
// freed when it is dropped.
type budget struct{ limit, used, most int64 }

// What an entry of a table costs beside its contents, where that is not laid out by this package: at the least load of
// a map.
const (
	textCost  = 112 // the header in the list of texts; header and code in the map
	tupleCost = 96  // three values and their tuple in the map
)

func (d *Decoder) charge(bytes int64) error {
	b := &d.budget
	if bytes > b.limit-b.used {
		return d.fail("it takes more than %d MiB of memory to decode", b.limit>>20)
	}
	b.used += bytes
	b.most = max(b.most, b.used)
	return nil
}

// room returns s with room for n more elements. A table that grows is charged for its old and its new memory at once, for
// both are there while it is copied.
func room[T any](d *Decoder, s []T, n int) ([]T, error) {
	if cap(s)-len(s) >= n {
		return s, nil
	}
	var element T
	size := int64(unsafe.Sizeof(element))
	capacity := max(len(s)+n, cap(s)+cap(s)/2)
	if err := d.charge(int64(capacity) * size); err != nil {
		return s, err
	}
	grown := make([]T, len(s), capacity)
	copy(grown, s)
	d.budget.used -= int64(cap(s)) * size
	return grown, nil
}

// add is append within the budget.
func add[T any](d *Decoder, s []T, v ...T) ([]T, error) {
	s, err := room(d, s, len(v))
	if err != nil {
		return s, err
	}
	return append(s, v...), nil
}
