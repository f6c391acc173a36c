package live

const (
	second = int64(1e9)
	// rateSeconds is the number of whole seconds over which a rate is taken.
	rateSeconds = 5
)

// rate counts events by second.
type rate struct {
	begun       bool
	first, last int64 // seconds
	counts      [rateSeconds + 1]int64
}

func (r *rate) add(timeNS int64) {
	if at := max(timeNS, 0) / second; at > r.last || !r.begun {
		r.turn(at)
	}
	*r.count(r.last)++
}

func (r *rate) count(at int64) *int64 { return &r.counts[at%int64(len(r.counts))] }

// turn advances to a later second.
func (r *rate) turn(at int64) {
	if !r.begun {
		r.begun, r.first, r.last = true, at, at
		return
	}
	for s := max(r.last+1, at-rateSeconds); s <= at; s++ {
		*r.count(s) = 0
	}
	r.last = at
}

// at returns the events per second in the whole seconds before a time.
func (r *rate) at(timeNS int64) float64 {
	end := timeNS / second
	begin := max(end-rateSeconds, r.first)
	if !r.begun || begin >= end {
		return 0
	}
	n := int64(0)
	for s := max(begin, r.last-rateSeconds); s < min(end, r.last+1); s++ {
		n += *r.count(s)
	}
	return float64(n) / float64(end-begin)
}
