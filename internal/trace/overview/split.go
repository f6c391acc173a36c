package overview

import (
	"slices"

	"gm/formats/trace"
	"gm/internal/trace/tags"
)

// Others is the name of all blocks that have no name of their own in a picture.
const Others = "others"

// maxNames is how many names a picture distinguishes.
const maxNames = 8

// ByTag splits blocks by their tags, and those of the driver's level by kind and library, the largest of which tops lists.
func ByTag(labels *tags.Tags, tops []*Top) Split {
	all := labels.Names()
	s := newNaming(tops, func(top *Top) []string {
		if top.Level == trace.LevelDriver.String() {
			return append(names(top.Moments[0].Kinds), Others)
		}
		return all
	})
	return Split{s.names, func(e *trace.Event, text func(code int32) string) int {
		if e.Level == trace.LevelDriver {
			return s.of(e.Device, text(e.Tag))
		}
		return s.of(e.Device, labels.Of(e.ID).Name())
	}}
}

// ByStack splits blocks by stack, as shortened by short. The stacks with the most bytes, which tops lists, get names.
func ByStack(tops []*Top, short func(folded string) string) Split {
	s := newNaming(tops, func(top *Top) []string {
		var all []string
		for _, g := range top.Moments[0].Stacks {
			if name := short(g.Name); !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
		return append(all, Others)
	})
	shortened := map[int32]string{} // by code
	return Split{s.names, func(e *trace.Event, text func(code int32) string) int {
		name, ok := shortened[e.Stack]
		if !ok {
			name = short(text(e.Stack))
			shortened[e.Stack] = name
		}
		return s.of(e.Device, name)
	}}
}

// naming holds the names of each device. The last name is that of all blocks without another.
type naming map[int32]*deviceNames

type deviceNames struct {
	list    []string
	numbers map[string]int
}

// newNaming takes the first names of a list, and for all other blocks its last name, or Others if the list is longer than that.
func newNaming(tops []*Top, list func(*Top) []string) naming {
	all := naming{}
	for _, top := range tops {
		names := list(top)
		if n := len(names) - 1; n > maxNames {
			names = append(names[:maxNames:maxNames], Others)
		}
		d := &deviceNames{list: names, numbers: map[string]int{}}
		for i, name := range names {
			d.numbers[name] = i
		}
		all[top.Device] = d
	}
	return all
}

func (n naming) names(device int32) []string { return n[device].list }

func (n naming) of(device int32, name string) int {
	d := n[device]
	if i, ok := d.numbers[name]; ok {
		return i
	}
	return len(d.list) - 1
}

func names(groups []Group) []string {
	var all []string
	for _, g := range groups {
		all = append(all, g.Name)
	}
	return all
}
