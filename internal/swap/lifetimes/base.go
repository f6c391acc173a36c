package lifetimes

import "gm/internal/swap"

// OfBase reads memory beside the tensors out of swap.Op.Base, which has its bytes alone. What is there in each operator is taken to be there
// before the step and after it. Beyond that, bytes that are in use in operators one after the other are taken to be the same: memory is
// added where there are more, and what was added last goes where there are fewer. So what is in use in each operator is its Base, and there
// are as few stays as can be.
func OfBase(g *swap.Graph) []Beside {
	if len(g.Ops) == 0 {
		return nil
	}
	least := g.Ops[0].Base
	for i := range g.Ops {
		least = min(least, g.Ops[i].Base)
	}
	p := pile{}
	p.to(least, -1)
	for i := range g.Ops {
		p.to(g.Ops[i].Base, int32(i))
	}
	p.to(least, int32(len(g.Ops)))
	p.to(0, int32(len(g.Ops)+1))
	return p.gone
}

// pile is memory that is taken and freed at its upper end.
type pile struct {
	blocks []Beside // from the lowest
	height int64    // bytes of all
	gone   []Beside
}

// to takes or frees memory right before an operator.
func (p *pile) to(height int64, op int32) {
	if height > p.height {
		p.blocks = append(p.blocks, Beside{Bytes: height - p.height, Made: op})
		p.height = height
	}
	for p.height > height {
		top := &p.blocks[len(p.blocks)-1]
		bytes := min(top.Bytes, p.height-height)
		p.gone = append(p.gone, Beside{Bytes: bytes, Made: top.Made, Last: op - 1})
		p.height -= bytes
		if top.Bytes -= bytes; top.Bytes == 0 {
			p.blocks = p.blocks[:len(p.blocks)-1]
		}
	}
}
