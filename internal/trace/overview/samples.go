package overview

import "gm/formats/trace"

// Reconciliation compares the traced memory with NVML's measurement, at the moment of the highest sample of the process or, if NVML
// did not report the process's memory, of the highest sample of the card. Among equal samples the last counts.
type Reconciliation struct {
	Measured    string  `json:"measured"` // whose memory: "process" or "card"
	Samples     int64   `json:"samples"`  // number of its samples
	Row         int64   `json:"row"`
	TimeNS      int64   `json:"time_ns"`
	Used        int64   `json:"used_bytes"`        // as measured by NVML
	Traced      int64   `json:"traced_bytes"`      // device memory that the process had obtained from the driver
	Unexplained int64   `json:"unexplained_bytes"` // used minus traced
	Share       float64 `json:"unexplained_share"` // as a fraction of used
	Card        int64   `json:"card_bytes"`        // used on the whole card at that time; 0 if unknown
	Others      int64   `json:"others_bytes"`      // card minus process: other processes and the driver; 0 if unknown
}

// samples processes the samples of one device.
type samples struct {
	process, card tally
	beside        sample // of the card, at the time of the process's highest: a sample is valid until the next
	behind        bool   // the next sample of the card may be of the same time
}

// tally sums up the samples of one kind.
type tally struct {
	count   int64
	last    sample
	highest sample
}

type sample struct {
	row    int64
	timeNS int64
	used   int64
	traced int64
}

// add processes a sample; traced is the device memory that the process holds at that time, in bytes.
func (s *samples) add(e *trace.Event, row int64, whose trace.Kind, traced int64) {
	now := sample{row, e.TimeNS, e.Size, traced}
	switch whose {
	case trace.KindProcess:
		if s.process.add(now) {
			s.beside, s.behind = s.card.last, true
		}
	case trace.KindCard:
		s.card.add(now)
		if s.behind && (s.card.count == 1 || now.timeNS == s.process.highest.timeNS) {
			s.beside = now
		}
		s.behind = false
	}
}

// add reports whether the sample is the highest so far.
func (t *tally) add(now sample) bool {
	t.count++
	t.last = now
	if t.count > 1 && now.used < t.highest.used {
		return false
	}
	t.highest = now
	return true
}

// reconcile returns nil if there are no samples.
func (s *samples) reconcile() *Reconciliation {
	whose, from := trace.KindProcess, &s.process
	if from.count == 0 {
		whose, from = trace.KindCard, &s.card
	}
	if from.count == 0 {
		return nil
	}
	h := from.highest
	r := &Reconciliation{
		Measured: string(whose), Samples: from.count, Row: h.row, TimeNS: h.timeNS,
		Used: h.used, Traced: h.traced, Unexplained: h.used - h.traced,
	}
	if r.Used > 0 {
		r.Share = float64(r.Unexplained) / float64(r.Used)
	}
	// A card is sampled shortly before its processes: one that grows fast is then found with more than its card.
	if whose == trace.KindProcess && s.card.count > 0 && s.beside.used >= h.used {
		r.Card = s.beside.used
		r.Others = r.Card - r.Used
	}
	return r
}
