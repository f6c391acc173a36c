package main

import (
	"os"

	"gm/internal/models/graphs"
	"gm/internal/report"
	"gm/internal/swap"
	"gm/internal/swap/simulate"
)

// kindsOf are the layers of figure 8; joins are no layers there.
var kindsOf = []swap.OpType{swap.Conv, swap.Activation, swap.Norm, swap.Pool, swap.Join, swap.Linear, swap.Dropout, swap.Softmax}

// dymemKinds is figures 1 and 8 as far as the text has numbers: the part of the memory that feature maps take at the peak of a step with nothing
// moved, and which layers make them.
func dymemKinds(e *experiment) error {
	table := report.Table{Titles: []string{"figures 1, 8: feature maps", "of the peak"}}
	for _, kind := range kindsOf {
		table.Titles = append(table.Titles, kind.String())
	}
	var large, small gains // by network: what convolutions, activations, norms and pooling make, and what linear layers, dropout and the softmax do
	for _, spec := range dymemNets {
		m, err := graphs.Build(spec)
		if err != nil {
			return err
		}
		features, err := featuresAtPeak(m.Graph)
		if err != nil {
			return err
		}
		parts := madeBy(m.Graph)
		row := []string{spec, part(features)}
		for _, kind := range kindsOf {
			row = append(row, part(parts[kind]))
		}
		table.Add(row...)
		large.add(parts[swap.Conv] + parts[swap.Activation] + parts[swap.Norm] + parts[swap.Pool])
		small.add(parts[swap.Linear] + parts[swap.Dropout] + parts[swap.Softmax])
		if spec == inceptionNet {
			e.add("dymem: feature maps of Inception-v4, of its peak", part(features), "more than 90 %", features > 0.9)
		}
	}
	e.add("dymem: what convolutions, activations, norms and pooling make, of all feature maps", large.String(), "more than 90 %", large.least > 0.9)
	e.add("dymem: what linear layers, dropout and the softmax make", small.String(), "less than 1 %", small.most < 0.01)
	return table.Write(os.Stdout)
}

// featuresAtPeak returns the part that tensors take of the most that is in use.
func featuresAtPeak(g *swap.Graph) (float64, error) {
	peak, tensors := int64(0), int64(0)
	_, err := simulate.Run(g, nil, dymemLink, func(s simulate.Span) {
		if s.Tensor < 0 && s.Tensors+s.Base > peak {
			peak, tensors = s.Tensors+s.Base, s.Tensors
		}
	})
	return float64(tensors) / float64(peak), err
}

// madeBy returns the part of the bytes of the forward pass that operators of each type make.
func madeBy(g *swap.Graph) map[swap.OpType]float64 {
	parts, all := map[swap.OpType]float64{}, 0.0
	for i := range g.Tensors {
		if o := &g.Ops[g.Tensors[i].Made]; o.Phase == swap.Forward {
			parts[o.Type] += float64(g.Tensors[i].Bytes)
			all += float64(g.Tensors[i].Bytes)
		}
	}
	for kind := range parts {
		parts[kind] /= all
	}
	return parts
}
