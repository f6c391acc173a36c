package overview

import (
	"strconv"

	"gm/formats/trace"
)

// groupings group blocks in every way that is shown.
type groupings struct {
	live, blocks  int64
	stacks, kinds grouping[int32]
	streams       grouping[int64]
	requests      grouping[request]
	labels        grouping[int]
	classes       grouping[int]
	hasStacks     bool
}

func newGroupings() *groupings {
	return &groupings{
		stacks: grouping[int32]{}, kinds: grouping[int32]{}, streams: grouping[int64]{}, requests: grouping[request]{},
		labels: grouping[int]{}, classes: grouping[int]{},
	}
}

func (g *groupings) add(b block) {
	g.live += b.size
	g.blocks++
	g.hasStacks = g.hasStacks || b.stack != 0
	g.stacks.add(b.stack, b.size)
	g.streams.add(b.stream, b.size)
	g.kinds.add(b.tag, b.size)
	g.requests.add(request{b.size, b.stream}, b.size)
	g.labels.add(b.label, b.size)
	g.classes.add(SizeClass(b.size), b.size)
}

// leastTags is the least number of tags and rules that are listed. It is more than are derived.
const leastTags = 24

// list adds the groups to a moment.
func (g *groupings) list(m *Moment, h *holder, text func(code int32) string) {
	n := h.look.Groups
	m.Live, m.Blocks, m.HasStacks = g.live, g.blocks, g.hasStacks
	m.Stacks = g.stacks.list(m.Live, n, text)
	m.Requests = g.requests.list(m.Live, n, request.String)
	m.Streams = g.streams.list(m.Live, n, func(handle int64) string { return strconv.FormatInt(handle, 10) })
	m.Classes = g.classes.list(m.Live, len(g.classes), ClassName)
	m.Kinds, m.Tags, m.Rules = []Group{}, []Group{}, []Group{}
	if h.level == trace.LevelDriver {
		m.Kinds = g.kinds.list(m.Live, n, text)
		return
	}
	byTag := grouping[string]{}
	for label, sum := range g.labels {
		byTag.join(h.look.Tags.Label(label).Name(), sum)
	}
	m.Tags = byTag.list(m.Live, max(n, leastTags), func(tag string) string { return tag })
	m.Rules = g.labels.list(m.Live, max(n, leastTags), func(label int) string {
		l := h.look.Tags.Label(label)
		return l.Name() + ": " + l.Rule
	})
}
