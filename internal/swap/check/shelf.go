package check

// shelf holds copies that share no byte, by offset, and finds the lowest room for another. It is a treap whose priorities are a fixed mix
// of the copies' numbers, with the most room that is below a copy in each of its subtrees.
type shelf struct {
	spots []spot // by copy
	root  int32
}

// spot is where a copy is, and its place in the tree.
type spot struct {
	offset, bytes int64
	room          int64 // bytes between it and the copy below
	most          int64 // the most room in the subtree
	left, right   int32
}

// nowhere is the number of no copy.
const nowhere = int32(-1)

func newShelf(copies int) *shelf { return &shelf{spots: make([]spot, copies), root: nowhere} }

func (x *spot) end() int64 { return x.offset + x.bytes }

// lowest returns the lowest offset of a free range of this size in bytes.
func (h *shelf) lowest(bytes int64) int64 {
	if h.root == nowhere || h.spots[h.root].most < bytes {
		return h.top(h.root)
	}
	for i := h.root; ; {
		x := &h.spots[i]
		switch {
		case x.left != nowhere && h.spots[x.left].most >= bytes:
			i = x.left
		case x.room >= bytes:
			return x.offset - x.room
		default:
			i = x.right
		}
	}
}

// top returns the end of the highest copy of a subtree, or 0.
func (h *shelf) top(root int32) int64 {
	end := int64(0)
	for i := root; i != nowhere; i = h.spots[i].right {
		end = h.spots[i].end()
	}
	return end
}

// put adds a copy of at least a byte, and returns false if some of its bytes are another's.
func (h *shelf) put(i int32, offset, bytes int64) bool {
	low, high := h.split(h.root, offset)
	below := h.top(low)
	room := offset - below
	fits := room >= 0 && h.fill(high, room+bytes)
	if fits {
		h.spots[i] = spot{offset: offset, bytes: bytes, room: room, most: room, left: nowhere, right: nowhere}
		low = h.merge(low, i)
	}
	h.root = h.merge(low, high)
	return fits
}

// take removes a copy, if it is there.
func (h *shelf) take(i int32) {
	x := h.spots[i]
	if x.bytes == 0 {
		return
	}
	low, high := h.split(h.root, x.offset)
	_, high = h.split(high, x.offset+1)
	h.fill(high, -x.room-x.bytes)
	h.spots[i] = spot{}
	h.root = h.merge(low, high)
}

// fill takes bytes from the room below the lowest copy of a subtree, and returns false if there is a copy with less.
func (h *shelf) fill(root int32, bytes int64) bool {
	if root == nowhere {
		return true
	}
	x := &h.spots[root]
	fits := true
	if x.left != nowhere {
		fits = h.fill(x.left, bytes)
	} else if fits = x.room >= bytes; fits {
		x.room -= bytes
	}
	h.update(root)
	return fits
}

// split parts a subtree into the copies below an offset and the others.
func (h *shelf) split(root int32, offset int64) (low, high int32) {
	if root == nowhere {
		return nowhere, nowhere
	}
	x := &h.spots[root]
	if x.offset < offset {
		x.right, high = h.split(x.right, offset)
		low = root
	} else {
		low, x.left = h.split(x.left, offset)
		high = root
	}
	h.update(root)
	return low, high
}

// merge joins two subtrees, all of low below all of high.
func (h *shelf) merge(low, high int32) int32 {
	switch {
	case low == nowhere:
		return high
	case high == nowhere:
		return low
	case priority(low) > priority(high):
		h.spots[low].right = h.merge(h.spots[low].right, high)
		h.update(low)
		return low
	}
	h.spots[high].left = h.merge(low, h.spots[high].left)
	h.update(high)
	return high
}

// update finds the most room of a subtree anew, whose children know theirs.
func (h *shelf) update(root int32) {
	x := &h.spots[root]
	x.most = x.room
	for _, child := range [...]int32{x.left, x.right} {
		if child != nowhere {
			x.most = max(x.most, h.spots[child].most)
		}
	}
}

// priority spreads numbers evenly (the finalizer of MurmurHash3).
func priority(copy int32) uint32 {
	h := uint32(copy) + 1
	h ^= h >> 16
	h *= 0x85ebca6b
	h ^= h >> 13
	h *= 0xc2b2ae35
	return h ^ h>>16
}
