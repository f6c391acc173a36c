package downsets

// table finds states by their sets: open addressing over their numbers, at most half full.
type table struct {
	slots []int32 // -1 for none
	used  int
}

// find returns the slot of a set, which is -1 if there is none. A slot that the caller fills has to be followed by grow.
func (t *table) find(s *set, states []state) *int32 {
	mask := len(t.slots) - 1
	for i := int(hash(s)) & mask; ; i = (i + 1) & mask {
		if at := t.slots[i]; at < 0 || states[at].set == *s {
			return &t.slots[i]
		}
	}
}

// grow makes room for one more set.
func (t *table) grow(states []state) {
	if t.used++; 2*t.used < len(t.slots) {
		return
	}
	old := t.slots
	t.slots = make([]int32, max(1024, 2*len(old)))
	for i := range t.slots {
		t.slots[i] = -1
	}
	for _, at := range old {
		if at >= 0 {
			*t.find(&states[at].set, states) = at
		}
	}
}

func hash(s *set) uint64 {
	var h uint64
	for _, word := range s {
		h = (h ^ word) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	return h
}
