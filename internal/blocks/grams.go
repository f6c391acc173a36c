package blocks

import "gm/internal/cuda"

// gramSize is how many consecutive requests identify a position in a plan.
const gramSize = 8

// grams finds the last requests in a plan.
type grams struct {
	steps  []uint64         // their hashes
	at     map[uint64]int32 // by the hash of gramSize requests, the step of the last of them; none if there are several
	recent [gramSize]uint64 // hashes of the last requests, request number i at i modulo gramSize
	count  int
}

func newGrams(steps []Step) grams {
	g := grams{at: make(map[uint64]int32, len(steps))}
	for i := range steps {
		g.steps = append(g.steps, hashOf(steps[i].Size, steps[i].Stream))
	}
	for turn := range len(steps) + gramSize {
		i := turn % len(steps)
		g.push(steps[i].Size, steps[i].Stream)
		if turn < gramSize {
			continue
		}
		hash := g.hash()
		if at, known := g.at[hash]; known && at != int32(i) {
			g.at[hash] = none
		} else {
			g.at[hash] = int32(i)
		}
	}
	g.count = 0
	return g
}

// push adds a request.
func (g *grams) push(size int64, stream cuda.Stream) {
	g.recent[g.count%gramSize] = hashOf(size, stream)
	g.count++
}

func hashOf(size int64, stream cuda.Stream) uint64 { return mix(uint64(size) ^ mix(uint64(stream))) }

// find returns the step that the last request is. The requests before it identify the step, unless they occur in the plan several times, as
// layers are alike. Then it is the first step, from next on, that matches the last few requests. It returns none if there is no such step,
// or next is none.
func (g *grams) find(next int32) int32 {
	if g.count < gramSize {
		return none
	}
	if at, ok := g.at[g.hash()]; ok && at != none {
		return at
	}
	if next == none {
		return none
	}
	for ahead := range min(aheadSteps, len(g.steps)) {
		if at := (int(next) + ahead) % len(g.steps); g.matches(at) {
			return int32(at)
		}
	}
	return none
}

// aheadSteps is the most steps that a job is assumed to leave out, and fewRequests how many matching requests show that it did.
const (
	aheadSteps  = 256
	fewRequests = 3
)

// matches reports whether the last few requests are those up to a step.
func (g *grams) matches(at int) bool {
	for k := range fewRequests {
		if g.recent[(g.count-1-k)%gramSize] != g.steps[(at-k+len(g.steps))%len(g.steps)] {
			return false
		}
	}
	return true
}

func (g *grams) hash() uint64 {
	var h uint64
	for k := range gramSize {
		h = mix(h ^ g.recent[(g.count+k)%gramSize])
	}
	return h
}

// mix is the finalizer of MurmurHash3.
func mix(x uint64) uint64 {
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}
