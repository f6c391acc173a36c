package page

import (
	"cmp"
	"slices"

	"gm/internal/trace/tags"
)

// maxTensors is the most tensors of a page. With up to 18 bytes for each, compressed and in base64, the page stays below 10 MB.
const maxTensors = 500_000

// bands is the number of stretches of events for which the merged tensors are added up.
const bands = 4096

// Fit prepares recordings to be shown on one page. If they have too many tensors for it, the smallest of the parts that have most of them
// are merged. It does nothing when it is called again.
func Fit(all ...*Recording) {
	var parts []*part
	for _, r := range all {
		parts = append(parts, r.parts...)
	}
	fit(parts, maxTensors)
}

// fit leaves the parts at most so many tensors: a part with less than its share leaves the rest to others.
func fit(parts []*part, most int) {
	parts = slices.SortedStableFunc(slices.Values(parts), func(a, b *part) int { return cmp.Compare(len(a.tensors), len(b.tensors)) })
	for i, p := range parts {
		p.mergeSmallest(most / (len(parts) - i))
		most -= len(p.tensors)
	}
}

// mergeSmallest keeps the largest tensors, at most limit. All others are shown as one band: for each stretch of events as one tensor of the
// most bytes that live at once.
func (p *part) mergeSmallest(limit int) {
	if len(p.tensors) <= limit {
		return
	}
	keep := max(limit-bands, 1)
	kept := p.largest(keep)
	p.merged = len(p.tensors) - keep
	label := p.addLabel(tags.Label{Tag: "small tensors", Certainty: tags.NoTag})
	m := merger{part: p, number: make([]int32, len(p.tensors)), label: label, kinds: map[kind]int32{}}
	m.stack = int32(len(p.stacks))
	p.stacks = append(p.stacks, "")
	m.merge(kept, (len(p.events)+bands-1)/bands)
}

// largest returns which tensors are among the n largest, the earlier among equals.
func (p *part) largest(n int) []bool {
	order := make([]int32, len(p.tensors))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(p.kinds[p.tensors[b].kind].size, p.kinds[p.tensors[a].kind].size), cmp.Compare(a, b))
	})
	kept := make([]bool, len(p.tensors))
	for _, i := range order[:n] {
		kept[i] = true
	}
	return kept
}

func (p *part) addLabel(l tags.Label) int32 {
	p.labels = append(p.labels, l)
	return int32(len(p.labels) - 1)
}

// merger writes the tensors and events of a part anew.
type merger struct {
	*part
	tensors []tensor
	events  []event
	at      []int32 // new position by old
	number  []int32 // new number of a kept tensor, by old
	kinds   map[kind]int32
	label   int32
	stack   int32
	band    int32 // the tensor that stands for the merged ones, never for none
}

// merge keeps some tensors; stretch is how many events a band holds.
func (m *merger) merge(kept []bool, stretch int) {
	m.band = never
	m.at = make([]int32, len(m.part.events)+1)
	bytes, count := int64(0), int32(0)
	for first := 0; first < len(m.part.events); first += stretch {
		events := m.part.events[first:min(first+stretch, len(m.part.events))]
		most, mostCount := bytes, count
		for i, e := range events {
			if kept[e.tensor] {
				continue
			}
			t := &m.part.tensors[e.tensor]
			if size := m.part.kinds[t.kind].size; t.born == int32(first+i) {
				bytes, count = bytes+size, count+1
			} else {
				bytes, count = bytes-size, count-1
			}
			if bytes > most {
				most, mostCount = bytes, count
			}
		}
		m.begin(most, mostCount, events[0])
		for i, e := range events {
			m.at[first+i] = int32(len(m.events))
			if kept[e.tensor] {
				m.keep(e, int32(first+i))
			}
		}
	}
	m.at[len(m.part.events)] = int32(len(m.events))
	m.replace()
}

// begin begins a band of so many bytes at an event, unless it is the one before.
func (m *merger) begin(bytes int64, count int32, at event) {
	k := kind{size: bytes, count: count, label: m.label, stack: m.stack}
	if m.band != never {
		if m.part.kinds[m.tensors[m.band].kind] == k {
			return
		}
		m.tensors[m.band].died = int32(len(m.events))
		m.events = append(m.events, event{m.band, at.timeNS, at.row})
		m.band = never
	}
	if count == 0 {
		return
	}
	m.band = int32(len(m.tensors))
	m.tensors = append(m.tensors, tensor{born: int32(len(m.events)), died: never, kind: numberOf(m.kinds, k, &m.part.kinds, k)})
	m.events = append(m.events, event{m.band, at.timeNS, at.row})
}

// keep copies an event of a tensor that is kept.
func (m *merger) keep(e event, at int32) {
	if t := m.part.tensors[e.tensor]; t.born == at {
		m.number[e.tensor] = int32(len(m.tensors))
		m.tensors = append(m.tensors, tensor{int32(len(m.events)), never, t.kind, t.addr})
	} else {
		m.tensors[m.number[e.tensor]].died = int32(len(m.events))
	}
	m.events = append(m.events, event{m.number[e.tensor], e.timeNS, e.row})
}

// replace puts what was written in place of the old, with all positions.
func (m *merger) replace() {
	p := m.part
	p.tensors, p.events = m.tensors, m.events
	for i := range p.segments {
		s := &p.segments[i]
		if s.from = m.at[s.from]; s.to != never {
			s.to = m.at[s.to]
		}
	}
	for i := range p.ooms {
		p.ooms[i].At = m.at[p.ooms[i].At]
	}
	for i := range p.marks {
		p.marks[i].At = m.at[p.marks[i].At]
	}
	for i := range p.sections {
		s := &p.sections[i]
		s.From.At, s.To.At = m.at[s.From.At], m.at[s.To.At]
	}
}
