package shapes

// Matrices returns how many numbers are in the matrices of all layers and in the tables of tokens, which is what MEMO counts as parameters: its
// TGS and MFU (table 3) agree with no other count.
func (t *Transformer) Matrices() int64 {
	projections := int64(2)
	if t.Gated() {
		projections = 3
	}
	tables := int64(1)
	if !t.Tied() {
		tables = 2
	}
	layer := 2*t.Hidden*(t.Hidden+t.Keys()) + projections*t.Hidden*t.FFN
	return t.Layers*layer + tables*t.Vocabulary*t.Hidden
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
