package shapes

// Matrices returns how many numbers are in the matrices of all layers and in the tables of tokens, which is what MEMO counts as parameters: its
// TGS and MFU (table 3) agree with no other count.
func (t *Transformer) Matrices() int64 {
	tables := int64(1)
	if !t.Tied() {
		tables = 2
	}
	routed := t.RoutedLayers()
	e := &t.Experts
	each := t.projections() * t.Hidden * e.FFN
	return t.Layers*t.attentionMatrices() + (t.Layers-routed)*t.projections()*t.Hidden*t.FFN +
		routed*((e.Count+e.Shared)*each+e.Count*t.Hidden) + tables*t.Vocabulary*t.Hidden
}

// RoutedLayers returns how many layers have experts.
func (t *Transformer) RoutedLayers() int64 {
	if t.Experts.Count == 0 {
		return 0
	}
	return max(0, t.Layers-t.Experts.Dense)
}

// projections returns the matrices of a feed-forward part.
func (t *Transformer) projections() int64 {
	if t.Gated() {
		return 3
	}
	return 2
}

func (t *Transformer) attentionMatrices() int64 {
	if l := t.Latent; l.Keys > 0 {
		return t.Hidden*l.Queries + l.Queries*t.Heads*(l.Plain+l.Turned) + t.Hidden*(l.Keys+l.Turned) +
			l.Keys*t.Heads*(l.Plain+l.Values) + t.Heads*l.Values*t.Hidden
	}
	return 2 * t.Hidden * (t.Queries() + t.Keys())
}

// Parameters returns how many numbers the model learns.
func (t *Transformer) Parameters() int64 {
	norm, biases := 2*t.Hidden, int64(0)
	if t.RMSNorm() {
		norm = t.Hidden
	}
	if t.Biased() {
		biases = 2*t.Hidden + 2*t.Keys() + t.FFN + t.Hidden // of queries and output, of keys and values, and of the feed-forward part
	}
	if t.QKVBias {
		biases += t.Queries() + 2*t.Keys()
	}
	if t.OutBias {
		biases += t.Hidden
	}
	if t.HeadNorms {
		biases += 2 * t.HeadSize()
	}
	biases += t.Latent.Queries + t.Latent.Keys // of the norms of what is compressed
	return t.Matrices() + t.Layers*(2*norm+biases) + norm + t.Positions*t.Hidden
}

// AttentionFLOPs returns the arithmetic of attention in one layer, forward: two products, halved by the causal mask.
func (t *Transformer) AttentionFLOPs(batch, sequence int64) float64 {
	return 2 * float64(batch) * float64(sequence) * float64(sequence) * float64(t.Hidden)
}

// AttentionBackward is how many times the arithmetic of the forward pass attention takes in the backward pass: five products for two.
const AttentionBackward = 2.5

// ProductFLOPs returns the arithmetic of a product of tokens with a matrix.
func ProductFLOPs(tokens, rows, columns int64) float64 {
	return 2 * float64(tokens) * float64(rows) * float64(columns)
}

// StepFLOPs returns the arithmetic of a step with nothing recomputed: 6sP + 6nhs^2 for each sequence, with P the matrices (MEMO, section 5.1).
func (t *Transformer) StepFLOPs(batch, sequence, parameters int64) float64 {
	s := float64(sequence)
	return float64(batch) * (6*s*float64(parameters) + 6*float64(t.Layers*t.Hidden)*s*s)
}
