package replay

import "fmt"

// Repeat returns a program that makes the requests [lo, hi) of p, counted from 0, the given number of times in place of once, and ends with
// them. They must be an iteration: as many requests of the same sizes come before them, and what these leave in use is freed in the
// iteration after them.
func (p *Program) Repeat(lo, hi, times int) (*Program, error) {
	first, last := p.stepOf(lo), p.stepOf(hi)
	if lo < hi-lo || last == len(p.Kinds) {
		return nil, fmt.Errorf("repeat requests %d to %d of %s: they are not within other iterations", lo, hi, p.Name)
	}
	q := *p
	q.Kinds, q.Tensors = p.Kinds[:first:first], p.Tensors[:first:first]
	q.Rows, q.TimesNS = p.Rows[:first:first], p.TimesNS[:first:first]
	q.Sizes, q.Streams, q.Pools = clip(p.Sizes), clip(p.Streams), clip(p.Pools)
	older, now := p.tensorsOf(lo-(hi-lo), lo), p.tensorsOf(lo, hi) // by request
	place := map[int32]int{}                                       // the request of a tensor of the two
	for i := range now {
		place[older[i]], place[now[i]] = i, i
		if p.Sizes[older[i]] != p.Sizes[now[i]] {
			return nil, fmt.Errorf("repeat requests %d to %d of %s: those before them are of other sizes", lo, hi, p.Name)
		}
	}
	before := older
	for range times {
		current := make([]int32, len(now))
		request := 0
		for i := first; i < last; i++ {
			t := p.Tensors[i]
			k, repeated := place[t]
			switch {
			case p.Kinds[i] == Alloc:
				current[request] = q.tensor(p.Sizes[t], int64(p.Streams[t]), int32(p.Pools[t]))
				q.step(Alloc, current[request], int64(p.Rows[i]), p.TimesNS[i])
				request++
			case p.Kinds[i] == Empty:
				q.step(Empty, 0, int64(p.Rows[i]), p.TimesNS[i])
			case !repeated:
				return nil, fmt.Errorf("repeat requests %d to %d of %s: row %d frees what is older", lo, hi, p.Name, p.Rows[i])
			case t == now[k]:
				q.step(p.Kinds[i], current[k], int64(p.Rows[i]), p.TimesNS[i])
			default:
				q.step(p.Kinds[i], before[k], int64(p.Rows[i]), p.TimesNS[i])
			}
		}
		before = current
	}
	return &q, nil
}

func clip[T any](s []T) []T { return s[:len(s):len(s)] }

// stepOf returns the step of a request, the number of steps if there are fewer requests.
func (p *Program) stepOf(request int) int {
	for i, kind := range p.Kinds {
		if kind != Alloc {
			continue
		}
		if request == 0 {
			return i
		}
		request--
	}
	return len(p.Kinds)
}

// tensorsOf returns the tensors of the requests [lo, hi).
func (p *Program) tensorsOf(lo, hi int) []int32 {
	var all []int32
	request := 0
	for i, kind := range p.Kinds {
		if kind != Alloc {
			continue
		}
		if lo <= request && request < hi {
			all = append(all, p.Tensors[i])
		}
		request++
	}
	return all
}
