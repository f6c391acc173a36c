// Package changes finds what changed between two traces, or between two iterations of one trace: which groups of allocations, by stack
// and by size, grew, are new, are gone or are no longer freed; and which leak.
package changes

import (
	"cmp"
	"slices"
	"strconv"

	"gm/formats/trace"
	"gm/internal/trace/overview"
	"gm/internal/units"
)

// Device is what changed on one GPU from A to B.
type Device struct {
	Device    int32      `json:"device"`
	Level     string     `json:"level"`        // whose allocations: the framework's or, if it has none, the driver's
	Mixed     bool       `json:"mixed_levels"` // A's allocations are of the other level
	HasStacks bool       `json:"has_stacks"`
	Reserved  Pair       `json:"peak_reserved_bytes"` // 0 if unknown
	Peak      Comparison `json:"peak"`                // what was live at the peak
	End       Comparison `json:"end"`                 // what was live at the end
	Made      Comparison `json:"allocated"`
	Each      bool       `json:"allocated_per_iteration"` // Made is per iteration, rather than in total
}

// Pair is bytes in A and in B.
type Pair struct {
	A int64 `json:"a"`
	B int64 `json:"b"`
}

// Comparison is one quantity of A and B, and the groups that changed: by stack or, without stacks, by size and stream; and by size
// class. The changes of the groups add up to the change of the whole, and so do those of the classes.
type Comparison struct {
	Pair
	Groups  []Change `json:"groups"`
	Classes []Change `json:"size_classes"`
}

// Change is a group that changed.
type Change struct {
	Name    string `json:"name"` // a folded stack, a size and stream, or a size class
	What    string `json:"what"` // one of the constants below
	A       int64  `json:"a_bytes"`
	B       int64  `json:"b_bytes"`
	ABlocks int64  `json:"a_blocks"`
	BBlocks int64  `json:"b_blocks"`
}

// Bytes returns by how many bytes the group changed, up or down.
func (c *Change) Bytes() int64 { return abs(c.B - c.A) }

// The values of Change.What.
const (
	New    = "new"
	Gone   = "gone"
	Grew   = "grew"
	Shrank = "shrank"
	Kept   = "no longer freed" // A freed all blocks that it allocated, B did not
)

// Before is the group of blocks without a stack that are older than the recording, Stackless that of other blocks without a stack.
const (
	Before    = "before the recording"
	Stackless = "(no stack)"
)

// Compare compares the contents of one GPU in A and B; nil stands for nothing. Two sections of one trace have the same stacks;
// those of different runs are matched, see [Match].
func Compare(a, b *Contents, oneTrace bool) *Device {
	one := b
	if b == nil {
		one = a
	}
	none := &Contents{Device: one.Device, Level: one.Level, HasStacks: one.HasStacks, text: one.text}
	if a == nil {
		a = none
	} else if b == nil {
		b = none
	}
	d := &Device{
		Device: one.Device, Level: one.Level.String(), HasStacks: a.HasStacks && b.HasStacks, Reserved: Pair{a.Reserved, b.Reserved},
		Mixed: a.Level != b.Level, Each: a.Iterations > 0 && b.Iterations > 0,
	}
	nameA, nameB := names(a, b, d.HasStacks, oneTrace)
	d.Peak = compare(a, b, nameA, nameB, func(_ *Contents, g *group) sum { return g.atPeak }, false)
	d.End = compare(a, b, nameA, nameB, func(_ *Contents, g *group) sum { return g.now }, true)
	d.Made = compare(a, b, nameA, nameB, func(c *Contents, g *group) sum {
		if d.Each {
			return sum{g.steady.bytes / int64(c.Iterations), g.steady.blocks / int64(c.Iterations)}
		}
		return g.made
	}, false)
	return d
}

// names returns the names of the groups of a and of b.
func names(a, b *Contents, stacks, oneTrace bool) (nameA, nameB func(*group) string) {
	ofA, ofB := map[string]string{}, map[string]string{}
	if stacks && !oneTrace {
		ofA, ofB = Match(a.stacks(), b.stacks())
	}
	name := func(c *Contents, of map[string]string) func(*group) string {
		return func(g *group) string {
			switch {
			case c.Level == trace.LevelDriver && g.tag != 0 && !stacks:
				return c.text(g.tag)
			case stacks && g.stack != 0:
				stack := c.text(g.stack)
				if matched, ok := of[stack]; ok {
					return matched
				}
				return stack
			case g.early:
				return Before
			case stacks:
				return Stackless
			}
			return request(g.size, g.stream)
		}
	}
	return name(a, ofA), name(b, ofB)
}

// stacks returns the distinct stacks.
func (c *Contents) stacks() []string {
	var all []string
	seen := map[int32]bool{0: true}
	for k := range c.groups {
		if !seen[k.stack] {
			seen[k.stack] = true
			all = append(all, c.text(k.stack))
		}
	}
	return all
}

// account holds the two sides of a group.
type account struct {
	a, b         sum
	made         sum // allocated by A
	keptA, keptB int64
}

// compare compares one quantity. freed says that the quantity is what is live at the end.
func compare(a, b *Contents, nameA, nameB func(*group) string, of func(*Contents, *group) sum, freed bool) Comparison {
	groups, classes := map[string]*account{}, map[int]*account{}
	var c Comparison
	for _, g := range a.groups {
		s := of(a, g)
		c.A += s.bytes
		for _, to := range []*account{entry(groups, nameA(g)), entry(classes, g.class())} {
			to.a.add(s.bytes, s.blocks)
			to.made.add(g.made.bytes, g.made.blocks)
			to.keptA += g.kept
		}
	}
	for _, g := range b.groups {
		s := of(b, g)
		c.B += s.bytes
		for _, to := range []*account{entry(groups, nameB(g)), entry(classes, g.class())} {
			to.b.add(s.bytes, s.blocks)
			to.keptB += g.kept
		}
	}
	c.Groups = changes(groups, func(name string) string { return name }, freed)
	c.Classes = changes(classes, className, freed)
	return c
}

// pools is the class of memory in the driver's pools, whose blocks are unknown.
const pools = -1

func (g *group) class() int {
	if g.size == 0 {
		return pools
	}
	return overview.SizeClass(g.size)
}

func className(class int) string {
	if class == pools {
		return "in pools"
	}
	return overview.ClassName(class)
}

func entry[K comparable](all map[K]*account, key K) *account {
	a := all[key]
	if a == nil {
		a = &account{}
		all[key] = a
	}
	return a
}

// changes lists the groups that changed, the largest change first.
func changes[K comparable](all map[K]*account, name func(K) string, freed bool) []Change {
	list := []Change{}
	for key, a := range all {
		if a.a.bytes != a.b.bytes {
			list = append(list, Change{name(key), a.what(freed), a.a.bytes, a.b.bytes, a.a.blocks, a.b.blocks})
		}
	}
	slices.SortFunc(list, func(x, y Change) int {
		return cmp.Or(cmp.Compare(y.Bytes(), x.Bytes()), cmp.Compare(x.Name, y.Name))
	})
	return list
}

func (a *account) what(freed bool) string {
	switch {
	case freed && a.b.bytes > a.a.bytes && a.made.blocks > 0 && a.keptA == 0 && a.keptB > 0:
		return Kept
	case a.a.bytes == 0:
		return New
	case a.b.bytes == 0:
		return Gone
	case a.b.bytes > a.a.bytes:
		return Grew
	}
	return Shrank
}

func abs(x int64) int64 { return max(x, -x) }

func request(size int64, stream int32) string {
	return units.Bytes(size).String() + " on stream " + strconv.Itoa(int(stream))
}
