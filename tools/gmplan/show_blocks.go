package main

import (
	"fmt"
	"math/bits"

	"gm/formats/plan"
	"gm/internal/report"
	"gm/internal/trace/tags"
	"gm/internal/units"
)

// kinds are the kinds of blocks by tag: the number of a kind is that of its colour in all pictures.
type kinds struct {
	names  []string
	number map[string]int // by tag
	tagged bool           // a block has a tag
}

// untagged is the kind of a block without a tag.
const untagged = -1

func newKinds() kinds {
	k := kinds{names: tags.Derived(), number: map[string]int{}}
	for i, tag := range k.names {
		k.number[tag] = i
	}
	return k
}

// of returns the kind of a block whose tag has a name, as a plan has it.
func (k *kinds) of(name string) int {
	tag := tags.TagOf(name)
	if tag == "" || tag == tags.Unknown {
		return untagged
	}
	k.tagged = true
	n, known := k.number[tag]
	if !known {
		n = len(k.names)
		k.number[tag] = n
		k.names = append(k.names, tag)
	}
	if name != tag {
		k.names[n] = name // it says that it is a guess
	}
	return n
}

// shade mixes the bits of the id, so that neighbours have different shades.
func shade(t *plan.Tensor) int { return int(bits.ReverseBytes64(uint64(t.ID)*0x9e3779b97f4a7c15) % 3) }

// lives are the kinds of blocks in a picture, by how long they live. Each but the first and the last lives for at least this part of the
// rows.
var lives = [...]struct {
	name string
	part int64
}{
	{"to the end", 0}, {"over 1/4 of the rows", 4}, {"over 1/16 of the rows", 16}, {"over 1/64 of the rows", 64}, {"over 1/256 of the rows", 256},
	{"shorter", 0},
}

// life returns the number in lives of a block of a plan over so many rows, which ends at row end.
func life(b *report.Block, rows, end int64) int {
	if b.End >= end {
		return 0
	}
	for i, l := range lives[:len(lives)-1] {
		if l.part > 0 && (b.End-b.Start)*l.part > rows {
			return i
		}
	}
	return len(lives) - 1
}

// packings returns the pictures of the arenas. Colours stand for tags or, if there are none, for lives.
func (p *contents) packings() []report.Packing {
	names, by := append(p.kinds.names, "no tag"), "tag"
	if !p.kinds.tagged {
		names, by = nil, "life"
		for _, l := range lives {
			names = append(names, l.name)
		}
	}
	var all []report.Packing
	for _, a := range p.Arenas {
		for i := range a.blocks {
			b := &a.blocks[i]
			switch {
			case !p.kinds.tagged:
				b.Kind = life(b, p.End-p.First, p.End)
			case b.Kind == untagged:
				b.Kind = len(p.kinds.names)
			}
		}
		all = append(all, report.Packing{
			Title: fmt.Sprintf("%s: arena %s, %s, colours by %s", p.Source, a.Name, units.Bytes(a.Peak), by),
			Rows:  "row of the " + p.RowsOf, Kinds: names, Rest: p.kinds.tagged, Blocks: a.blocks,
		})
	}
	return all
}
