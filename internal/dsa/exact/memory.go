package exact

// memory holds states that have failed, in a table of fixed size. Each bucket has a state that took long to search
// and the latest one.
type memory struct {
	buckets []bucket
}

type bucket [2]entry

// entry says that a state fails at a capacity, and so at all below.
type entry struct {
	name     state
	capacity int64
	cost     int64 // nodes
}

// state names floors and buffers left by two hashes, so that no two that differ are ever taken for one.
type state [2]uint64

// bucketCount is a power of two; the table takes 64 bytes for each.
const bucketCount = 1 << 17

// has says whether a state is known to fail.
func (m *memory) has(name state, capacity int64) bool {
	if m.buckets == nil {
		return false
	}
	b := &m.buckets[name[0]%bucketCount]
	return b[0].name == name && b[0].capacity >= capacity || b[1].name == name && b[1].capacity >= capacity
}

// add remembers a state that has failed.
func (m *memory) add(name state, capacity, cost int64) {
	if m.buckets == nil {
		m.buckets = make([]bucket, bucketCount)
	}
	b := &m.buckets[name[0]%bucketCount]
	slot := 1
	if b[0].name == name || cost >= b[0].cost {
		slot = 0
		if b[0].name != name {
			b[1] = b[0]
		}
	}
	b[slot] = entry{name, capacity, cost}
}

// hash is the finalizer of SplitMix64.
func hash(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
