package policy

import (
	"errors"
	"math"
	"slices"
	"time"

	"gm/internal/swap"
	"gm/internal/swap/draft"
)

// planJoint chooses for each tensor, or for some of its rows and for the rest, whether it is kept, copied to the host or recomputed, by
// simulation: several tastes make a choice each, and the best choice is changed tensor by tensor for as long as steps get faster.
//
// A taste goes by this: copies cost nothing as long as the lane to the host is idle, and they save most for tensors that are expensive to
// recompute; so those are copied when they are written, until memory suffices everywhere or the lane is full. Where memory is still short, the
// cheapest are recomputed; where nothing is cheap the compute stream waits.
func planJoint(p *problem) ([]swap.Action, error) {
	c := newChooser(p)
	best, err := c.first(0, len(c.prices))
	if err != nil {
		return nil, err
	}
	c.improve(&best, c.tries())
	return c.actions(&best)
}

// outcome is a choice and the result of its schedule.
type outcome struct {
	result
	share []int64
	taste int // the dividing price that it began with
}

// first returns the best choice of the tastes of some of the dividing prices. The error is a *ShortError, that of the taste that comes closest.
func (c *chooser) first(from, end int) (outcome, error) {
	best, err := c.firstOf(from, end, fewBans)
	if _, short := errors.AsType[*draft.ShortError](err); short {
		return c.firstOf(from, end, mostBans)
	}
	return best, err
}

func (c *chooser) firstOf(from, end, bans int) (outcome, error) {
	clear(c.banned)
	best := outcome{result: result{step: math.MaxInt64}}
	var closest *draft.ShortError
	for i := from; i < min(end, len(c.prices)); i++ {
		for _, how := range c.tastes(i) {
			o, err := c.attempt(how, bans)
			short, isShort := errors.AsType[*draft.ShortError](err)
			switch {
			case isShort && (closest == nil || short.Bytes < closest.Bytes):
				closest = short
			case isShort:
			case err != nil:
				return outcome{}, err
			case o.better(&best.result):
				best = o
				best.taste = i
			}
		}
	}
	if best.share == nil {
		return outcome{}, closest
	}
	return best, nil
}

// mostPrices is how many prices of recomputing may divide what is copied in the background from what is not.
const mostPrices = 8

// dividing returns the dividing prices: 0, with which all is copied, prices that candidates have, those that are all but the same once,
// and infinity.
func (c *chooser) dividing() []float64 {
	var prices []float64
	for _, i := range c.cheap {
		if dear := c.all[i].dear; len(prices) == 0 || dear > 1.02*prices[len(prices)-1] {
			prices = append(prices, dear)
		}
	}
	few := []float64{0}
	for i := range min(mostPrices, len(prices)) {
		few = append(few, 0.99*prices[(2*i+1)*len(prices)/(2*min(mostPrices, len(prices)))])
	}
	return append(few, math.Inf(1))
}

// tastes returns those of a dividing price.
func (c *chooser) tastes(i int) []taste {
	least := c.prices[i]
	all := []taste{{least, c.stall, false, 0}, {least, c.stall, true, 0}}
	if i == 0 {
		all = append(all, taste{least, 0, false, 0})
	}
	for _, small := range c.sizes {
		all = append(all, taste{least, c.stall, false, small}, taste{least, c.stall, true, small})
	}
	return all
}

// How often a taste chooses again without tensors whose recomputation takes too much memory: at first, and if no taste succeeds.
const (
	fewBans  = 8
	mostBans = 64
)

// attempt makes the choice of one taste. The error is a *ShortError.
func (c *chooser) attempt(how taste, most int) (outcome, error) {
	for bans := 0; ; bans++ {
		var o outcome
		err := c.choose(how)
		if err == nil {
			o, err = c.evaluate(math.MaxInt64)
		}
		short, isShort := errors.AsType[*draft.ShortError](err)
		if !isShort || short.Host || bans == most {
			return o, err
		}
		if !c.blame(short.Op, short.Bytes) {
			return o, err
		}
	}
}

// evaluate simulates the choice. The error is errSlow if it is known beforehand that the step would take longer than a time.
func (c *chooser) evaluate(most time.Duration) (outcome, error) {
	actions, err := c.realizeWithin(c.aways(), most)
	if err != nil {
		return outcome{}, err
	}
	r, err := c.simulate(actions)
	return outcome{result: r, share: slices.Clone(c.share)}, err
}

// adopt adopts what was away in another choice, and returns false if there is none or it is not possible.
func (c *chooser) adopt(all []away) (outcome, bool) {
	if all == nil {
		return outcome{}, false
	}
	bytes := make(map[draft.Gap]int64, len(all))
	for _, x := range all {
		bytes[x.Gap] = x.bytes
	}
	share := make([]int64, len(c.all))
	for i := range share {
		share[i] = keep
		if copied, ok := bytes[c.all[i].Gap]; ok {
			share[i] = copied
		}
	}
	c.load(share)
	o, err := c.evaluate(math.MaxInt64)
	return o, err == nil
}

// actions returns the schedule of an outcome. It is valid until the next one is made.
func (c *chooser) actions(o *outcome) ([]swap.Action, error) {
	copy(c.share, o.share)
	return c.realize(c.aways())
}
