package tensors

// Len returns the number of rows.
func (b *Batch) Len() int { return len(b.ID) }

// Row returns row i.
func (b *Batch) Row(i int) Tensor {
	return Tensor{
		ID: b.ID[i], Size: b.Size[i], Alloc: b.Alloc[i], Free: b.Free[i], AllocNS: b.AllocNS[i], FreeNS: b.FreeNS[i],
		Device: b.Device[i], Stream: b.Stream[i], Level: b.Level[i], Pool: b.Pool[i], Tag: b.Tag[i], Certainty: b.Certainty[i],
		Rule: b.Rule[i], Stack: b.Stack[i],
	}
}

// Append adds one row.
func (b *Batch) Append(t Tensor) {
	b.ID = append(b.ID, t.ID)
	b.Size = append(b.Size, t.Size)
	b.Alloc = append(b.Alloc, t.Alloc)
	b.Free = append(b.Free, t.Free)
	b.AllocNS = append(b.AllocNS, t.AllocNS)
	b.FreeNS = append(b.FreeNS, t.FreeNS)
	b.Device = append(b.Device, t.Device)
	b.Stream = append(b.Stream, t.Stream)
	b.Level = append(b.Level, t.Level)
	b.Pool = append(b.Pool, t.Pool)
	b.Tag = append(b.Tag, t.Tag)
	b.Certainty = append(b.Certainty, t.Certainty)
	b.Rule = append(b.Rule, t.Rule)
	b.Stack = append(b.Stack, t.Stack)
}

// Reset empties the batch and keeps its memory.
func (b *Batch) Reset() {
	b.ID, b.Size, b.Alloc, b.Free = b.ID[:0], b.Size[:0], b.Alloc[:0], b.Free[:0]
	b.AllocNS, b.FreeNS, b.Device, b.Stream = b.AllocNS[:0], b.FreeNS[:0], b.Device[:0], b.Stream[:0]
	b.Level, b.Pool, b.Tag, b.Certainty = b.Level[:0], b.Pool[:0], b.Tag[:0], b.Certainty[:0]
	b.Rule, b.Stack = b.Rule[:0], b.Stack[:0]
}
