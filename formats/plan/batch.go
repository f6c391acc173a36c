package plan

// Len returns the number of rows.
func (b *Batch) Len() int { return len(b.ID) }

// Row returns row i.
func (b *Batch) Row(i int) Tensor {
	return Tensor{
		ID: b.ID[i], Size: b.Size[i], Alloc: b.Alloc[i], Free: b.Free[i], AllocNS: b.AllocNS[i], FreeNS: b.FreeNS[i],
		Device: b.Device[i], Stream: b.Stream[i], Pool: b.Pool[i], Arena: b.Arena[i], Offset: b.Offset[i], Tag: b.Tag[i],
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
	b.Pool = append(b.Pool, t.Pool)
	b.Arena = append(b.Arena, t.Arena)
	b.Offset = append(b.Offset, t.Offset)
	b.Tag = append(b.Tag, t.Tag)
}

// Reset empties the batch and keeps its memory.
func (b *Batch) Reset() {
	b.ID, b.Size, b.Alloc, b.Free = b.ID[:0], b.Size[:0], b.Alloc[:0], b.Free[:0]
	b.AllocNS, b.FreeNS, b.Device, b.Stream = b.AllocNS[:0], b.FreeNS[:0], b.Device[:0], b.Stream[:0]
	b.Pool, b.Arena, b.Offset, b.Tag = b.Pool[:0], b.Arena[:0], b.Offset[:0], b.Tag[:0]
}
