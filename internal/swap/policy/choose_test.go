package policy

import (
	"cmp"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"gm/internal/swap/draft"
)

// plainly makes the choices of a chooser in the plainest way: all candidates are looked at for each, and all operators.
type plainly struct {
	*chooser // for its candidates alone
	share    []int64
	from     []int32
	end      []int32
	over     []int64 // bytes beyond the limit at each operator
	beside   []int64 // those of them that are taken while something is recomputed
	host     int64
}

func newPlainly(c *chooser) *plainly {
	p := &plainly{chooser: c, share: slices.Repeat([]int64{keep}, len(c.all)), from: make([]int32, len(c.all)), beside: make([]int64, c.Ops())}
	for _, x := range c.all {
		p.end = append(p.end, x.Before)
	}
	for _, used := range c.Plain {
		p.over = append(p.over, used-c.Limits.Device)
	}
	return p
}

// pick returns the candidate that comes first in an order, of those that are wanted: of equals the first of all. It is -1 if there is none.
func (p *plainly) pick(wanted func(i int32) bool, order func(a, b int32) int) int32 {
	best := int32(-1)
	for i := range int32(len(p.all)) {
		if wanted(i) && (best < 0 || order(i, best) < 0) {
			best = i
		}
	}
	return best
}

// take lets a candidate be away: some bytes of it copied, the rest recomputed. What that is computed from is there then, and what of it is
// itself recomputed needs its own sources there, too.
func (p *plainly) take(i int32, copied int64, from int32) {
	p.share[i], p.from[i] = copied, from
	p.host += copied
	draft.Plus(p.over, from, max(from, p.end[i]), -p.all[i].bytes)
	if copied < p.all[i].bytes {
		p.prepare(p.all[i].Tensor, p.end[i])
	}
}

func (p *plainly) prepare(t, op int32) {
	var r draft.Recipe
	p.Remake.Begin(&r)
	p.Remake.Add(&r, t, op, p.Remake.Dead)
	for _, ghost := range r.Ghosts {
		p.over[op] += p.Graph.Tensors[ghost].Bytes
	}
	for _, again := range append(slices.Clone(r.Ghosts), t) {
		if more := p.Graph.Tensors[again].Scratch - p.beside[op]; more > 0 {
			p.over[op] += more
			p.beside[op] += more
		}
	}
	var again []int32
	for i, x := range p.all {
		if !slices.Contains(r.Needs, x.Tensor) || x.After >= op || op >= p.end[i] {
			continue
		}
		if p.share[i] != keep {
			for o := max(op, p.from[i]); o < p.end[i]; o++ {
				p.over[o] += x.bytes
			}
			if p.share[i] < x.bytes {
				again = append(again, x.Tensor)
			}
		}
		p.end[i] = op
	}
	for _, from := range again {
		p.prepare(from, op)
	}
}

// fill keeps the lane to the host busy: see chooser.fill.
func (p *plainly) fill(how taste) {
	seen := make([]bool, len(p.all))
	written := func(i int32) time.Duration { return p.Paced[p.Graph.Tensors[p.all[i].Tensor].Made+1] }
	waits := func(i int32) bool { return !seen[i] && p.all[i].spares >= how.least && p.all[i].bytes >= how.small }
	for lane := time.Duration(0); ; {
		i := p.pick(func(i int32) bool { return waits(i) && written(i) <= lane }, func(a, b int32) int {
			x, y := &p.all[a], &p.all[b]
			return cmp.Or(cmp.Compare(y.spares, x.spares), cmp.Compare(y.Before, x.Before))
		})
		if i < 0 {
			next := p.pick(waits, func(a, b int32) int { return cmp.Compare(written(a), written(b)) })
			if next < 0 {
				return
			}
			lane = written(next)
			continue
		}
		seen[i] = true
		x := &p.all[i]
		from := x.After + 1
		for from < p.Ops() && p.Paced[from] < lane+x.copied {
			from++
		}
		if from < p.end[i] && slices.Max(p.over[from:p.end[i]]) > 0 && p.host+x.bytes <= p.Limits.Host {
			p.take(i, x.bytes, from)
			lane += x.copied
		}
	}
}

// cover makes memory suffice at one operator after the other. It returns the first where it does not.
func (p *plainly) cover(how taste) (op int32, ok bool) {
	for op := range p.Ops() {
		for p.over[op] > 0 {
			if !p.coverBy(op, how) && !p.coverBy(op, taste{most: how.most, chains: how.chains}) && !p.again(op, taste{most: math.Inf(1)}, false) {
				return op, false
			}
		}
	}
	return 0, true
}

func (p *plainly) coverBy(op int32, how taste) bool {
	return p.again(op, how, true) || how.chains && p.again(op, how, false) || p.hurry(op) || p.copyLast(op, how.small)
}

// free reports whether a candidate could be away at an operator, and is not.
func (p *plainly) free(i, op int32) bool {
	return p.share[i] == keep && i != p.locked && p.all[i].After < op && op < p.end[i]
}

func (p *plainly) again(op int32, how taste, alone bool) bool {
	i := p.pick(func(i int32) bool {
		return p.free(i, op) && p.all[i].able && !p.banned[i] && p.all[i].spares <= how.most && p.all[i].bytes >= how.small && (!alone || p.alone(i))
	}, func(a, b int32) int {
		return cmp.Or(cmp.Compare(p.all[a].dear, p.all[b].dear), cmp.Compare(p.all[b].Before, p.all[a].Before))
	})
	if i < 0 {
		return false
	}
	p.take(i, 0, p.all[i].After+1)
	return true
}

// alone reports whether nothing else that is recomputed has to be there for a candidate, now that it ends where its gap does.
func (p *plainly) alone(i int32) bool {
	for j, y := range p.all {
		away := p.share[j] != keep && p.share[j] < y.bytes && y.After < p.all[i].Before && p.all[i].Before < p.end[j]
		if away && slices.Contains(p.all[i].needs, y.Tensor) {
			return false
		}
	}
	return p.end[i] == p.all[i].Before
}

func (p *plainly) hurry(op int32) bool {
	i := p.pick(func(i int32) bool { return p.share[i] > 0 && p.from[i] > op && p.all[i].After < op && op < p.end[i] },
		func(a, b int32) int { return cmp.Compare(p.from[a], p.from[b]) })
	if i < 0 {
		return false
	}
	for o := op; o < min(p.from[i], p.end[i]); o++ {
		p.over[o] -= p.all[i].bytes
	}
	p.from[i] = op
	return true
}

func (p *plainly) copyLast(op int32, small int64) bool {
	i := p.pick(func(i int32) bool {
		return p.free(i, op) && p.all[i].bytes >= small && p.host+p.all[i].bytes <= p.Limits.Host
	},
		func(a, b int32) int { return cmp.Compare(p.end[b], p.end[a]) })
	if i < 0 {
		return false
	}
	p.take(i, p.all[i].bytes, op)
	return true
}

// same compares a choice with that of a chooser.
func (p *plainly) same(c *chooser) bool {
	for i, share := range c.share {
		if share != p.share[i] || share != keep && (c.from[i] != p.from[i] || c.end[i] != p.end[i]) {
			return false
		}
	}
	return c.host == p.host
}

// TestChoose compares the choices of all tastes, some with candidates that are banned or locked, with those made plainly.
func TestChoose(t *testing.T) {
	made, failed := 0, 0
	for seed := range uint64(300) {
		g, l := randomProblem(seed, 40)
		r := rand.New(rand.NewPCG(seed, 6))
		if seed%3 == 0 {
			pace(g, r)
		}
		if plain := g.Plain(); r.IntN(2) == 0 {
			l.Device = plain[r.IntN(len(plain))] // some operators are just at the limit
		}
		c := newChooser(newProblem(g, l))
		for i := range c.prices {
			for _, how := range c.tastes(i) {
				for k := range c.banned {
					c.banned[k] = r.IntN(8) == 0
				}
				if c.locked = -1; len(c.all) > 0 && r.IntN(2) == 0 {
					c.locked = r.Int32N(int32(len(c.all)))
				}
				if len(c.cheap) > 0 && r.IntN(3) == 0 {
					how.most = c.all[c.cheap[r.IntN(len(c.cheap))]].dear
				}
				if r.IntN(3) == 0 && c.choose(how) == nil {
					c.Limits.Host = c.host // just enough
					c.filled = filled{}
				}
				p := newPlainly(c)
				p.fill(how)
				op, ok := p.cover(how)
				err := c.choose(how)
				if c.Limits.Host != l.Host {
					c.Limits.Host, c.filled = l.Host, filled{}
				}
				if short, isShort := errors.AsType[*draft.ShortError](err); ok != (err == nil) || isShort && (short.Op != op || short.Bytes != p.over[op]) {
					t.Fatalf("seed %d, %+v: %v, expected %v, %d bytes at %d", seed, how, err, ok, p.over[op], op)
				}
				if !p.same(c) {
					t.Fatalf("seed %d, %+v: shares %v from %v to %v, expected %v from %v to %v", seed, how, c.share, c.from, c.end, p.share, p.from, p.end)
				}
				if made++; !ok {
					failed++
				}
			}
		}
	}
	if failed < 500 || made-failed < 500 {
		t.Errorf("%d choices, %d of them do not suffice", made, failed)
	}
}

// TestLoad loads the shares of choices in one go. What is away ends no earlier than it must for what is recomputed, and memory counts as free
// from the last use on.
func TestLoad(t *testing.T) {
	for seed := range uint64(100) {
		g, l := randomProblem(seed, 40)
		c := newChooser(newProblem(g, l))
		r := rand.New(rand.NewPCG(seed, 7))
		share := make([]int64, len(c.all))
		for i := range share {
			if share[i] = keep; r.IntN(2) == 0 {
				share[i] = c.all[i].bytes
			}
			if c.all[i].able && r.IntN(3) == 0 {
				share[i] = r.Int64N(c.all[i].bytes)
			}
		}
		p := newPlainly(c)
		for _, i := range byRank(c) { // those that others are computed from come last
			if share[i] != keep {
				p.take(i, share[i], c.all[i].After+1)
			}
		}
		c.load(share)
		sum := int64(0)
		for op := range c.Ops() {
			if sum += c.delta[op]; c.over[op]+sum != p.over[op] {
				t.Fatalf("seed %d: %d bytes over the limit at operator %d, expected %d", seed, c.over[op]+sum, op, p.over[op])
			}
		}
		if !p.same(c) {
			t.Fatalf("seed %d: from %v to %v, expected %v to %v", seed, c.from, c.end, p.from, p.end)
		}
	}
}

// byRank lists candidates, each before those that its tensor is computed from.
func byRank(c *chooser) []int32 {
	order := make([]int32, len(c.all))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int {
		return cmp.Compare(c.Remake.Rank[c.all[b].Tensor], c.Remake.Rank[c.all[a].Tensor])
	})
	return order
}

// TestAlone has a candidate that is recomputed at operator 5 from another tensor, and a gap of that.
func TestAlone(t *testing.T) {
	for name, test := range map[string]struct {
		end    int32 // of the candidate
		source draft.Gap
		share  int64 // of 10 bytes of the source
		until  int32 // its end
		want   bool
	}{
		"the source is kept":               {5, draft.Gap{After: 2, Before: 8}, keep, 8, true},
		"is recomputed behind it":          {5, draft.Gap{After: 2, Before: 8}, 0, 8, false},
		"is recomputed in part":            {5, draft.Gap{After: 2, Before: 8}, 9, 8, false},
		"is copied":                        {5, draft.Gap{After: 2, Before: 8}, 10, 8, true},
		"is back by then":                  {5, draft.Gap{After: 2, Before: 8}, 0, 5, true},
		"goes one operator before":         {5, draft.Gap{After: 4, Before: 8}, 0, 8, false},
		"goes behind it":                   {5, draft.Gap{After: 5, Before: 8}, 0, 8, true},
		"the candidate ends for another's": {4, draft.Gap{After: 5, Before: 8}, 0, 8, false},
	} {
		test.source.Tensor = 1
		c := &chooser{
			all:   []candidate{{Gap: draft.Gap{Tensor: 0, After: 1, Before: 5}, needs: []int32{1}}, {Gap: test.source, bytes: 10}},
			share: []int64{keep, test.share}, end: []int32{test.end, test.until},
		}
		c.byTensor.Fill(2, 2, func(i int) int32 { return c.all[i].Tensor })
		if got := c.alone(0); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
