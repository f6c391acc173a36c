package schedule

// Len returns the number of rows.
func (b *Batch) Len() int { return len(b.Kind) }

// Row returns row i.
func (b *Batch) Row(i int) Action {
	return Action{
		Kind: b.Kind[i], Tensor: b.Tensor[i], Name: b.Name[i], Operator: b.Operator[i], Bytes: b.Bytes[i], Slot: b.Slot[i], Lane: b.Lane[i],
	}
}

// Append adds one row.
func (b *Batch) Append(a Action) {
	b.Kind = append(b.Kind, a.Kind)
	b.Tensor = append(b.Tensor, a.Tensor)
	b.Name = append(b.Name, a.Name)
	b.Operator = append(b.Operator, a.Operator)
	b.Bytes = append(b.Bytes, a.Bytes)
	b.Slot = append(b.Slot, a.Slot)
	b.Lane = append(b.Lane, a.Lane)
}

// Reset empties the batch and keeps its memory.
func (b *Batch) Reset() {
	b.Kind, b.Tensor, b.Name, b.Operator = b.Kind[:0], b.Tensor[:0], b.Name[:0], b.Operator[:0]
	b.Bytes, b.Slot, b.Lane = b.Bytes[:0], b.Slot[:0], b.Lane[:0]
}
