package simulate

// index lists the tensors of each operator, one list behind the other in one slice.
type index struct {
	start   []int32
	tensors []int32
}

// makeIndex turns the operators of each tensor around.
func makeIndex(ops, tensors int, opsOf func(tensor int) []int32) index {
	x := index{start: make([]int32, ops+1)}
	total := 0
	for t := range tensors {
		for _, op := range opsOf(t) {
			x.start[op+1]++
			total++
		}
	}
	for op := range ops {
		x.start[op+1] += x.start[op]
	}
	x.tensors = make([]int32, total)
	at := append([]int32(nil), x.start[:ops]...)
	for t := range tensors {
		for _, op := range opsOf(t) {
			x.tensors[at[op]] = int32(t)
			at[op]++
		}
	}
	return x
}

func (x *index) of(op int) []int32 { return x.tensors[x.start[op]:x.start[op+1]] }
