package evict

import "slices"

// Pool is a range of addresses, divided into blocks: free ones, no two of which are neighbours, and tensors.
type Pool struct {
	Blocks []Block // by address
}

// Block is a part of a pool.
type Block struct {
	Offset, Bytes int64
	Tensor        int32 // None for a free one
}

// NewPool returns a pool of free bytes.
func NewPool(bytes int64) *Pool {
	p := &Pool{}
	if bytes > 0 {
		p.Blocks = []Block{{0, bytes, None}}
	}
	return p
}

// Put places a tensor in a free block, which is split: at the block's lower end or at its upper one.
func (p *Pool) Put(block int, t int32, bytes int64, upper bool) {
	x := p.Blocks[block]
	taken, rest := Block{x.Offset, bytes, t}, Block{x.Offset + bytes, x.Bytes - bytes, None}
	if upper {
		taken.Offset, rest.Offset = x.Offset+rest.Bytes, x.Offset
	}
	p.Blocks[block] = taken
	switch {
	case rest.Bytes == 0:
	case upper:
		p.Blocks = slices.Insert(p.Blocks, block, rest)
	default:
		p.Blocks = slices.Insert(p.Blocks, block+1, rest)
	}
}

// Take frees the block of a tensor, and joins it with free neighbours.
func (p *Pool) Take(t int32) {
	i := slices.IndexFunc(p.Blocks, func(b Block) bool { return b.Tensor == t })
	first, end := i, i+1
	if first > 0 && p.Blocks[first-1].Tensor == None {
		first--
	}
	if end < len(p.Blocks) && p.Blocks[end].Tensor == None {
		end++
	}
	free := Block{Offset: p.Blocks[first].Offset, Tensor: None}
	for _, b := range p.Blocks[first:end] {
		free.Bytes += b.Bytes
	}
	p.Blocks = slices.Replace(p.Blocks, first, end, free)
}

// Largest returns the bytes of the largest free block.
func (p *Pool) Largest() int64 {
	largest := int64(0)
	for _, b := range p.Blocks {
		if b.Tensor == None {
			largest = max(largest, b.Bytes)
		}
	}
	return largest
}
