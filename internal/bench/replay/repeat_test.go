package replay

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// iterations is a program of some requests and then the same iteration several times. What an iteration leaves in use is freed in the next one.
// Rows count within an iteration. It also returns how many requests come before the iterations.
func iterations(seed uint64, times int) (p *Program, before, each int) {
	rng := rand.New(rand.NewPCG(seed, 8))
	p = &Program{Name: "iterations", Align: 512}
	row := int64(0)
	add := func(kind Kind, tensor int32) {
		p.step(kind, tensor, row, 100*row)
		row++
	}
	before, each = rng.IntN(4), 2+rng.IntN(8)
	for range before {
		add(Alloc, p.tensor(100, 0, 0))
	}
	frees := make([][]int, each) // after each request, those that are freed: at or above each, of the iteration before
	kinds := make([]Kind, each)
	for i := range each {
		kinds[i] = Kind(rng.IntN(3)) // 0: empties the cache after it; else how it is freed
		if at := rng.IntN(each); at >= i {
			frees[at] = append(frees[at], i)
		} else {
			frees[at] = append(frees[at], each+i)
		}
	}
	var older []int32
	for range times {
		row = 1000
		now := make([]int32, 0, each)
		for i := range each {
			now = append(now, p.tensor(int64(1000+i), int64(i%2), int32(i%3)))
			add(Alloc, now[i])
			if kinds[i] == 0 {
				add(Empty, 0)
			}
			for _, k := range frees[i] {
				t := int32(-1)
				if k < each {
					t = now[k]
				} else if older != nil {
					t = older[k-each]
				}
				switch {
				case t < 0:
					row++ // not there in the first iteration
				case kinds[k%each] == 2:
					add(Request, t)
					add(Complete, t)
				default:
					add(Free, t)
				}
			}
		}
		older = now
	}
	return p, before, each
}

// TestRepeatAgainstDefinition: a program of five iterations whose third is repeated some times ends with what a program of as many iterations
// begins with.
func TestRepeatAgainstDefinition(t *testing.T) {
	for seed := range uint64(60) {
		for _, times := range []int{1, 2, 5} {
			p, before, each := iterations(seed, 5)
			was := fmt.Sprint(*p)
			got, err := p.Repeat(before+2*each, before+3*each, times)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			all, _, _ := iterations(seed, 2+times+1)
			n := all.stepAt(before + (2+times)*each)
			if got, want := got.described(), all.described()[:n]; !slices.Equal(got, want) {
				t.Fatalf("seed %d: %d times %d requests from %d on:\n%v, want\n%v", seed, times, each, before+2*each, got, want)
			}
			if i := p.stepAt(before + 2*each); !slices.Equal(got.Rows[i:], slices.Repeat(p.Rows[i:p.stepAt(before+3*each)], times)) {
				t.Fatalf("seed %d: rows %v", seed, got.Rows[i:])
			}
			if fmt.Sprint(*p) != was {
				t.Fatalf("seed %d: the program itself was changed", seed)
			}
		}
	}
}

// described returns the steps in words. Tensors are numbered in the order of their requests.
func (p *Program) described() (all []string) {
	numbers := map[int32]int{}
	for i, kind := range p.Kinds {
		t := p.Tensors[i]
		if kind == Empty {
			all = append(all, "empty")
			continue
		}
		if kind == Alloc {
			numbers[t] = len(numbers)
		}
		all = append(all, fmt.Sprint(kind, " ", numbers[t], " of ", p.Sizes[t], " in ", p.Streams[t], p.Pools[t]))
	}
	return all
}

// stepAt returns the step of a request.
func (p *Program) stepAt(request int) int {
	for i, kind := range p.Kinds {
		if kind == Alloc && p.Tensors[i] == int32(request) {
			return i
		}
	}
	return -1
}

// TestRepeatRefuses what is no iteration within others.
func TestRepeatRefuses(t *testing.T) {
	p := &Program{Name: "p"}
	request := func(size int64) int32 {
		at := p.tensor(size, 0, 0)
		p.step(Alloc, at, int64(len(p.Kinds)), 0)
		return at
	}
	free := func(at int32) { p.step(Free, at, int64(len(p.Kinds)), 0) }
	old := request(5)
	for i := range 4 { // of requests 1 and 2, 3 and 4, 5 and 6, 7 and 8
		a := request(10)
		free(a)
		free(request(20))
		if i == 2 {
			free(old)
		}
	}
	for _, c := range []struct {
		lo, hi int
		want   string // "" for none
	}{
		{3, 5, ""}, {2, 4, "of other sizes"}, {4, 6, ""}, {1, 3, "not within"}, {0, 2, "not within"}, {5, 7, "frees what is older"},
		{7, 9, "not within"}, {8, 9, "not within"}, {3, 4, "of other sizes"}, {3, 7, "not within"}, {4, 5, "of other sizes"},
	} {
		_, err := p.Repeat(c.lo, c.hi, 2)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("requests %d to %d: %v, want %q", c.lo, c.hi, err, c.want)
		}
	}
}
