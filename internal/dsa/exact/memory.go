package exact

// memory holds states that have failed, in a table that grows up to a limit. Each bucket holds the state that took longest to
// search, and the latest one.
type memory struct {
	buckets []bucket
	added   int
}

type bucket [2]entry

// entry is a state that fails at a capacity, and so at all lower ones.
type entry struct {
	name     state
	capacity int64
	cost     int64 // nodes
}

// state identifies floors and remaining buffers by two hashes, so that different states are not confused in practice.
type state [2]uint64

// The number of buckets, of 64 bytes each. Both are powers of two.
const (
	leastBuckets = 1 << 8
	mostBuckets  = 1 << 17
)

// has reports whether a state is known to fail.
func (m *memory) has(name state, capacity int64) bool {
	if m.buckets == nil {
		return false
	}
	b := m.bucket(name)
	return b[0].name == name && b[0].capacity >= capacity || b[1].name == name && b[1].capacity >= capacity
}

// add stores a state that has failed.
func (m *memory) add(name state, capacity, cost int64) {
	if m.added++; m.added > len(m.buckets) && len(m.buckets) < mostBuckets {
		m.grow()
	}
	b := m.bucket(name)
	slot := 1
	if b[0].name == name || cost >= b[0].cost {
		slot = 0
		if b[0].name != name {
			b[1] = b[0]
		}
	}
	b[slot] = entry{name, capacity, cost}
}

func (m *memory) bucket(name state) *bucket { return &m.buckets[name[0]&uint64(len(m.buckets)-1)] }

// grow doubles the table.
func (m *memory) grow() {
	old := m.buckets
	m.buckets = make([]bucket, max(leastBuckets, 2*len(old)))
	for i := range old {
		for _, e := range old[i] {
			switch b := m.bucket(e.name); {
			case e == entry{}:
			case b[0] == entry{}:
				b[0] = e
			default:
				b[1] = e
			}
		}
	}
}

// hash is the finalizer of SplitMix64.
func hash(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
