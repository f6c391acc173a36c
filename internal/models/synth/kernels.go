package synth

import "gm/internal/models/shapes"

// Bytes of what kernels keep.
const (
	indexBytes     = 8
	randomBytes    = 8 // of each of the two numbers that dropout in attention needs
	statisticBytes = 4
)

// Bytes of the workspaces of libraries, and of CUB's kernels.
const (
	blasSpace      = 32 << 20 // cuBLAS
	lightSpace     = 1 << 20  // cuBLASLt
	attentionSpace = 256
	scanSpace      = 1791
	runsSpace      = 1279
)

// How PyTorch shares the rows of a sum among the threads of an H200 (setReduceConfig of Reduce.cuh).
const (
	processors    = 132
	threads       = 128 // of a block
	blocks        = processors * 2048 / threads
	blockColumns  = 128
	blockRows     = 4
	fewestRows    = 16  // that a thread sums up, for others to be given some
	mostRows      = 256 // that it sums up if there are more blocks to be had
	partialBytes  = 4
	semaphoreSize = 4
)

// How PyTorch adds gradients into a table (embedding_dense_backward_cuda): by sorting them, unless they are few.
const (
	fewLookups  = 3072
	partialRows = 10
)

// sumRows sums a matrix up over its rows, as for the gradient of a bias. Blocks that share a column leave partial sums.
func (m *machine) sumRows(rows, columns, element int64) *tensor {
	sum := m.alloc(columns*element, gradient)
	m.moves(rows * columns * element)
	grid := divide(columns, blockColumns)
	each := divide(rows, blockRows)
	shares := max(min(divide(blocks, grid), divide(each, fewestRows)), divide(each, mostRows))
	if shares > 1 {
		m.briefly(partialBytes*columns*shares*blockColumns, semaphoreSize*grid)
	}
	return sum
}

func divide(a, b int64) int64 { return (a + b - 1) / b }

// attention is cuDNN's, as scaled_dot_product_attention chooses it on this GPU: flash attention with a causal mask.
func (m *machine) attention(q, k, v *tensor, s *shape) *tensor {
	m.in("attention")
	n := m.node(1, q, k, v)
	m.keep(n, k, q, v)
	seed, offset := m.alloc(randomBytes, activation), m.alloc(randomBytes, activation)
	received := m.receiveKeys(k, v, s)
	y := n.makes(m.alloc(s.attended(q), activation))
	sums := m.alloc(statisticBytes*s.tokens*s.Heads, activation)
	m.briefly(attentionSpace)
	flops := s.AttentionFLOPs(s.batch, s.sequence) * float64(s.context)
	m.attends(flops, m.device.Reach.Attention)
	m.drop(received)
	m.keep(n, sums, y, offset, seed)
	m.drop(sums, seed, offset)
	if n == nil {
		return y
	}
	n.back = func(grads []*tensor) []*tensor {
		received := m.receiveKeys(k, v, s)
		whole := m.receiveKeys(k, v, s) // their gradients, until each GPU has its own
		out := []*tensor{m.alloc(q.size, temporary), m.alloc(k.size, temporary), m.alloc(v.size, temporary)}
		m.briefly(2*q.size + sums.size + attentionSpace)
		m.attends(shapes.AttentionBackward*flops, m.device.Reach.AttentionBackward)
		m.drop(whole, received)
		return out
	}
	return y
}

// attended returns the bytes of what attention returns for such queries.
func (s *shape) attended(q *tensor) int64 {
	if s.Latent.Keys > 0 {
		return s.tensorOf(s.Heads * s.Latent.Values)
	}
	return q.size
}

// receiveKeys gathers keys and values of the whole sequence, where GPUs split it; else it returns nil.
func (m *machine) receiveKeys(k, v *tensor, s *shape) *tensor {
	if s.context == 1 {
		return nil
	}
	all := (k.size + v.size) * s.context
	received := m.alloc(all, temporary)
	m.receives(all - all/s.context)
	return received
}

// lookup takes rows out of a table. Its gradient sorts the indices.
func (m *machine) lookup(p *param, indices *tensor, rows int64) *tensor {
	n := m.node(1, p.use(m))
	m.keep(n, indices)
	y := n.makes(m.alloc(rows*p.columns*half, activation))
	m.moves(2 * y.size)
	if n != nil {
		n.back = func(grads []*tensor) []*tensor {
			m.moves(2 * y.size)
			return []*tensor{m.scatter(p, rows)}
		}
	}
	return y
}

// scatter adds rows into a table (embedding_dense_backward).
func (m *machine) scatter(p *param, rows int64) *tensor {
	if rows <= fewLookups {
		return m.alloc(p.bytes(), gradient)
	}
	index := indexBytes * rows
	sorted, order, plain := m.alloc(index, temporary), m.alloc(index, temporary), m.alloc(index, temporary)
	m.briefly(2 * index)
	m.drop(plain)
	sum := m.alloc(p.bytes(), gradient)
	distinct := min(rows, p.rows)
	counts, number, ones := m.alloc(index, temporary), m.alloc(indexBytes, temporary), m.alloc(index, temporary)
	m.briefly(runsSpace)
	m.drop(ones)
	starts, partials := m.alloc(indexBytes*distinct, temporary), m.alloc(indexBytes*distinct, temporary)
	m.briefly(runsSpace)
	total := m.alloc(indexBytes, temporary)
	pieces := rows/partialRows + distinct
	offsets := m.alloc(indexBytes*pieces, temporary)
	m.briefly(partialBytes * pieces * p.columns)
	m.drop(offsets, total, starts, partials, counts, number, sorted, order)
	return sum
}
