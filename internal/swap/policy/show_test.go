package policy

import (
	"fmt"
	"strings"
	"time"

	"gm/internal/swap"
)

// show prints actions as kind, tensor, and operator: o, f, p, a, r, s for the kinds; the bytes of copies of a part are behind a colon.
func show(g *swap.Graph, actions []swap.Action) string {
	var words []string
	for _, a := range actions {
		word := fmt.Sprintf("%.1v%d@%d", a.Kind, a.Tensor, a.At)
		if a.Bytes > 0 && a.Bytes < g.Tensors[a.Tensor].Bytes {
			word += fmt.Sprintf(":%d", a.Bytes)
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// perByte is a link that copies a byte in a nanosecond, each way.
type perByte struct{}

func (perByte) OutTime(n int64) time.Duration { return time.Duration(n) }
func (perByte) InTime(n int64) time.Duration  { return time.Duration(n) }

// stack is a network of one operator a layer, in a row: layer i writes tensor i. Types are c, r, n, p, l for convolution, activation,
// normalization, pooling and linear layers. The backward pass of all reads the input, but that of activations what they have written. Each operator takes so many ns, and each tensor this many bytes.
func stack(types string, took time.Duration, bytes int64) *swap.Graph {
	kinds := map[rune]swap.OpType{'c': swap.Conv, 'r': swap.Activation, 'n': swap.Norm, 'p': swap.Pool, 'l': swap.Linear}
	g := &swap.Graph{}
	n := int32(len(types))
	for i, letter := range types {
		g.Ops = append(g.Ops, swap.Op{Type: kinds[letter], Layer: int32(i), Duration: took})
		t := swap.Tensor{Bytes: bytes, Made: int32(i), Layer: int32(i), Recompute: took}
		if i > 0 {
			t.From = []int32{int32(i) - 1}
		}
		g.Tensors = append(g.Tensors, t)
	}
	for i := n - 1; i >= 0; i-- {
		g.Ops = append(g.Ops, swap.Op{Type: g.Ops[i].Type, Layer: i, Duration: took, Phase: swap.Backward})
	}
	for i := range n {
		t := &g.Tensors[i]
		if i+1 < n {
			t.Uses = append(t.Uses, i+1)
			if g.Ops[i+1].Type != swap.Activation {
				t.Uses = append(t.Uses, 2*n-2-i)
			}
		}
		if i+1 == n || g.Ops[i].Type == swap.Activation {
			t.Uses = append(t.Uses, 2*n-1-i)
		}
	}
	return g
}
