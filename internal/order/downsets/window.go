package downsets

import "gm/internal/order"

// newSearch returns a search over the operators at places [from, to) of an order.
func newSearch(l *order.Links, whole []int32, from, to int, limits Limits) *search {
	p := l.Problem
	n := to - from
	s := &search{
		limits: limits, names: whole[from:to], preds: make([]set, n), temp: make([]int64, n), touched: make([][]int32, n),
	}
	place := make([]int32, len(whole))
	for i, op := range whole {
		place[op] = int32(i)
	}
	numbers := map[int32]int32{} // of tensors of the problem in this search
	for i, op := range s.names {
		s.all.add(i)
		s.temp[i] = p.Temp[op]
		for _, before := range l.Preds.Of(op) {
			if at := int(place[before]); at >= from {
				s.preds[i].add(at - from)
			}
		}
		for _, t := range l.Touched.Of(op) {
			number, ok := numbers[t]
			if !ok {
				number = int32(len(s.tensors))
				numbers[t] = number
				s.tensors = append(s.tensors, newTensor(&p.Tensors[t], place, from, to))
			}
			s.touched[i] = append(s.touched[i], number)
		}
	}
	s.places = make([]bool, n)
	for t, number := range numbers {
		for _, over := range p.Tensors[t].Over {
			if other, ok := numbers[over]; ok {
				s.tensors[number].over = append(s.tensors[number].over, other)
			}
		}
		if made := &s.tensors[number]; made.made >= 0 && len(made.over) > 0 {
			s.places[made.made] = true
		}
	}
	s.first = state{peak: limits.Enough, live: liveBefore(p, place, from), parent: -1}
	start := s.first
	s.runFree(&start, nil)
	s.table.grow(nil)
	s.reach(start)
	return s
}

func newTensor(t *order.Tensor, place []int32, from, to int) tensor {
	made := tensor{bytes: t.Bytes, made: -1}
	for _, op := range t.Ops {
		switch at := int(place[op]); {
		case at < from:
			made.early = true
		case at >= to:
			made.late = true
		default:
			made.ops.add(at - from)
		}
	}
	if at := int(place[t.Made()]); at >= from && at < to {
		made.made = at - from
	}
	return made
}

// liveBefore returns the bytes in memory before the operator at a place.
func liveBefore(p *order.Problem, place []int32, from int) int64 {
	var live int64
	for i := range p.Tensors {
		early, late := false, false
		for _, op := range p.Tensors[i].Ops {
			early = early || int(place[op]) < from
			late = late || int(place[op]) >= from
		}
		if early && late {
			live += p.Tensors[i].Bytes
		}
	}
	return live
}
