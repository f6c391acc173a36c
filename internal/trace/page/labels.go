package page

import (
	"slices"

	"gm/internal/report"
	"gm/internal/trace/tags"
)

// labelData is a tag. Labels with the same name are one group of the stack.
type labelData struct {
	Name  string `json:"name"` // the tag, and whether it is a guess
	Rule  string `json:"rule"`
	Rank  int    `json:"rank"`  // of the group, the lowest at the bottom
	Color int    `json:"color"` // number of the colour; -1 for that of what has no tag
}

// labelsOf returns the labels of a part: the derived tags come first, then the tags of the trace in order of appearance, then what has no tag.
func labelsOf(labels []tags.Label, colors map[string]int) []labelData {
	order := tags.Derived()
	all := []labelData{}
	for _, l := range labels {
		d := labelData{Name: report.Printable(l.Name()), Rule: report.Printable(l.Rule)}
		if l.Certainty == tags.NoTag {
			d.Rank, d.Color = 1<<30, -1
			all = append(all, d)
			continue
		}
		at := slices.Index(order, l.Tag)
		if at < 0 {
			at = len(order)
			order = append(order, l.Tag)
		}
		d.Rank, d.Color = at, colors[l.Tag]%report.AreaColors
		all = append(all, d)
	}
	return all
}

// kindColors returns the numbers of the colours of the driver's kinds of memory, as the picture of a trace without a framework has them: those
// with most bytes at the peak come first.
func (p *part) kindColors() map[string]int {
	at, live := p.peak()
	numbers := map[string]int{}
	for _, h := range p.holders(at, live, func(k *kind) string { return p.labels[k.label].Tag }) {
		numbers[h.Name] = len(numbers)
	}
	for _, l := range p.labels {
		if _, known := numbers[l.Tag]; !known {
			numbers[l.Tag] = len(numbers)
		}
	}
	return numbers
}
