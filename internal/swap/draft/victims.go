package draft

// victim is a page that may be sent away, and its rank when it was queued.
type victim struct {
	rank float64
	page int32
}

// before reports whether a page goes before another.
func (x victim) before(y victim) bool { return x.rank > y.rank || x.rank == y.rank && x.page < y.page }

// victims is a heap of pages, the one that goes first on top.
type victims []victim

func (h *victims) push(x victim) {
	all := append(*h, x)
	for i := len(all) - 1; i > 0 && all[i].before(all[(i-1)/2]); i = (i - 1) / 2 {
		all[i], all[(i-1)/2] = all[(i-1)/2], all[i]
	}
	*h = all
}

func (h *victims) pop() victim {
	last := len(*h) - 1
	top, all := (*h)[0], (*h)[:last]
	if last > 0 {
		all[0] = (*h)[last]
	}
	*h = all
	for i := 0; ; {
		first := i
		for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
			if all[child].before(all[first]) {
				first = child
			}
		}
		if first == i {
			return top
		}
		all[i], all[first] = all[first], all[i]
		i = first
	}
}
