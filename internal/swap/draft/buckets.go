package draft

// Buckets lists items by a number, such as trips by operator. Its memory is reused.
type Buckets struct {
	ends  []int32 // of the list of each number
	items []int32
}

// Fill lists the items from 0 to items by a number from 0 to numbers. Items of one number keep their order.
func (b *Buckets) Fill(numbers int32, items int, number func(i int) int32) {
	b.ends = Zeroed(b.ends, int(numbers)+1)
	b.items = Zeroed(b.items, items)
	for i := range items {
		b.ends[number(i)+1]++
	}
	for n := range numbers {
		b.ends[n+1] += b.ends[n]
	}
	for i := range items {
		at := &b.ends[number(i)]
		b.items[*at] = int32(i)
		*at++
	}
}

// Of returns the items of a number.
func (b *Buckets) Of(n int32) []int32 {
	if n == 0 {
		return b.items[:b.ends[0]]
	}
	return b.items[b.ends[n-1]:b.ends[n]]
}

// Zeroed returns n zeros, in the memory of a slice if it has room.
func Zeroed[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	s = s[:n]
	clear(s)
	return s
}
