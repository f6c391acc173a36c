package page

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"

	"gm/internal/report"
	"gm/internal/units"
)

// view is a recording as the template shows it: without the script, what lives at the peak of the first part.
type view struct {
	*Recording
	ID      string
	Summary string
	Parts   []partView
	Panes   []pane // of the parts that are also shown side by side
	Tags    []holder
	Stacks  []holder // or sizes, if no stack was recorded
	Stacked bool
}

type partView struct {
	Name   string
	Packed template.HTML // base64
}

// pane is a part that is shown in little beside others.
type pane struct {
	Number      int // of the part
	Name, Short string
}

// holder is the allocations with one name that live at the peak.
type holder struct {
	Name, Bytes, Share string
}

// mostHolders is the most stacks that are listed.
const mostHolders = 20

func (r *Recording) view(id string) (*view, error) {
	v := &view{Recording: r, ID: id, Summary: r.summary()}
	for _, p := range r.parts {
		packed, err := p.pack()
		if err != nil {
			return nil, err
		}
		v.Parts = append(v.Parts, partView{p.name, template.HTML(packed)})
	}
	v.Panes = r.panes()
	p := r.parts[0]
	at, live := p.peak()
	v.Tags = p.holders(at, live, func(k *kind) string { return p.labels[k.label].Name() })
	names := p.stackNames()
	v.Stacked = slices.ContainsFunc(p.stacks, func(folded string) bool { return folded != "" })
	v.Stacks = p.holders(at, live, func(k *kind) string {
		if !v.Stacked {
			return "blocks of " + units.Bytes(k.size).String()
		}
		return names.Of(p.stacks[k.stack])
	})
	v.Stacks = v.Stacks[:min(len(v.Stacks), mostHolders)]
	return v, nil
}

// panes returns the parts to show side by side: one of each GPU, that of the framework if there is one. There are none if that is one alone.
func (r *Recording) panes() []pane {
	var all []pane
	for i, p := range r.parts {
		if !p.behind {
			all = append(all, pane{i, p.name, p.short})
		}
	}
	if len(all) < 2 {
		return nil
	}
	return all
}

// summary says how much lives at the peak of each part.
func (r *Recording) summary() string {
	text := ""
	for i, p := range r.parts {
		at, live := p.peak()
		if i == 2 {
			return text + fmt.Sprintf(" And %d more.", len(r.parts)-i)
		}
		if i > 0 {
			text += " "
		}
		if len(r.parts) > 1 {
			text += p.name + ": "
		}
		text += fmt.Sprintf("%s live at the peak, row %d.", units.Bytes(live), p.rowAt(at))
	}
	return text
}

// holders adds up what lives at a position by a name of its kind, the most bytes first.
func (p *part) holders(at int32, live int64, name func(*kind) string) []holder {
	type sum struct {
		bytes, count int64
		name         string
	}
	byKind := map[int32]int64{}
	for i := range p.tensors {
		if t := &p.tensors[i]; t.liveAt(at) {
			byKind[t.kind]++
		}
	}
	byName := map[string]int32{}
	var sums []sum
	for k, n := range byKind {
		text := name(&p.kinds[k])
		s := &sums[numberOf(byName, text, &sums, sum{name: text})]
		s.bytes += n * p.kinds[k].size
		s.count += n * int64(p.kinds[k].count)
	}
	slices.SortFunc(sums, func(a, b sum) int { return cmp.Or(cmp.Compare(b.bytes, a.bytes), cmp.Compare(a.name, b.name)) })
	var all []holder
	for _, s := range sums {
		share := fmt.Sprintf("%.1f%%, %s", 100*float64(s.bytes)/float64(max(live, 1)), units.Count(s.count, "tensor"))
		all = append(all, holder{report.Printable(s.name), units.Bytes(s.bytes).String(), share})
	}
	return all
}
