package objects

import (
	"math/rand/v2"
	"testing"
)

// TestBelady gets objects of one size in an order that is known, as skewed as caches see, or in a loop. The policy latency, told when each is
// needed next, misses as often as the optimum of Belady; no other policy misses less. -v shows the numbers.
func TestBelady(t *testing.T) {
	const objects, room, gets = 30, 12, 500
	random := rand.New(rand.NewPCG(7, 7))
	for name, next := range map[string]func(i int) int{
		"skewed": func(int) int { return min(int(random.ExpFloat64()*8), objects-1) },
		"loop":   func(i int) int { return i % objects },
		"random": func(int) int { return random.IntN(objects) },
	} {
		order := make([]int, 0, objects+gets)
		for i := range objects + gets {
			if i < objects { // they are made in this order
				order = append(order, i)
				continue
			}
			order = append(order, next(i))
		}
		least := belady(order, objects, room)
		for p := range policies {
			misses := missesOf(t, p, order, objects, room)
			t.Logf("%s, %v: %d misses of %d gets, at least %d", name, p, misses, gets, least)
			if misses < least || p == Latency && misses > least {
				t.Errorf("%s, %v: %d misses, the least is %d", name, p, misses, least)
			}
		}
	}
}

// nextUses returns for each place in an order the next one of the same object, Unknown if there is none.
func nextUses(order []int, objects int) []int64 {
	last := make([]int64, objects)
	for i := range last {
		last[i] = Unknown
	}
	next := make([]int64, len(order))
	for i := len(order) - 1; i >= 0; i-- {
		next[i], last[order[i]] = last[order[i]], int64(i)
	}
	return next
}

// belady returns the misses, but those of the first uses, where what is needed last leaves.
func belady(order []int, objects, room int) (misses int64) {
	next, here := nextUses(order, objects), map[int]int64{}
	for i, o := range order {
		if _, found := here[o]; !found {
			if i >= objects {
				misses++
			}
			if len(here) == room {
				far := -1
				for other, at := range here {
					if far < 0 || at > here[far] {
						far = other
					}
				}
				delete(here, far)
			}
		}
		here[o] = next[i]
	}
	return misses
}

func missesOf(t *testing.T, p Policy, order []int, objects, room int) int64 {
	s := open(t, Options{Limit: int64(room) * 2 * mib, Host: 96 * mib, Policy: p})
	next := nextUses(order, objects)
	ids := make([]ID, objects)
	for i, o := range order {
		var err error
		if i < objects {
			ids[o], _, err = s.Create(2*mib, 0)
		} else {
			_, err = s.Get(ids[o], Read, 0)
		}
		check(t, err)
		check(t, s.Put(ids[o], next[i], 0))
	}
	misses := s.Stats().Misses
	check(t, s.Close())
	return misses
}
