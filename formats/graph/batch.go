package graph

// Batch holds consecutive rows, one slice per column, all of the same length.
type Batch struct {
	Kind        []Kind
	Operator    []int64
	Tensor      []int64
	Input       []int64
	Name        []int32
	Type        []int32
	Phase       []Phase
	Layer       []int32
	DurationNS  []int64
	BaseBytes   []int64
	Bytes       []int64
	RecomputeNS []int64
	RowBytes    []int64
	Role        []int32
	Saved       []int32
	Version     []int64
	DType       []int32
	Shape       []int32
	Origin      []int64
}

// Len returns the number of rows.
func (b *Batch) Len() int { return len(b.Kind) }

// Row returns row i.
func (b *Batch) Row(i int) Row {
	return Row{
		Kind: b.Kind[i], Operator: b.Operator[i], Tensor: b.Tensor[i], Input: b.Input[i], Name: b.Name[i], Type: b.Type[i],
		Phase: b.Phase[i], Layer: b.Layer[i], DurationNS: b.DurationNS[i], BaseBytes: b.BaseBytes[i], Bytes: b.Bytes[i],
		RecomputeNS: b.RecomputeNS[i], RowBytes: b.RowBytes[i], Role: b.Role[i], Saved: b.Saved[i], Version: b.Version[i], DType: b.DType[i], Shape: b.Shape[i],
		Origin: b.Origin[i],
	}
}

// Append adds one row.
func (b *Batch) Append(r Row) {
	b.Kind = append(b.Kind, r.Kind)
	b.Operator = append(b.Operator, r.Operator)
	b.Tensor = append(b.Tensor, r.Tensor)
	b.Input = append(b.Input, r.Input)
	b.Name = append(b.Name, r.Name)
	b.Type = append(b.Type, r.Type)
	b.Phase = append(b.Phase, r.Phase)
	b.Layer = append(b.Layer, r.Layer)
	b.DurationNS = append(b.DurationNS, r.DurationNS)
	b.BaseBytes = append(b.BaseBytes, r.BaseBytes)
	b.Bytes = append(b.Bytes, r.Bytes)
	b.RecomputeNS = append(b.RecomputeNS, r.RecomputeNS)
	b.RowBytes = append(b.RowBytes, r.RowBytes)
	b.Role = append(b.Role, r.Role)
	b.Saved = append(b.Saved, r.Saved)
	b.Version = append(b.Version, r.Version)
	b.DType = append(b.DType, r.DType)
	b.Shape = append(b.Shape, r.Shape)
	b.Origin = append(b.Origin, r.Origin)
}

// Reset empties the batch and keeps its memory.
func (b *Batch) Reset() {
	b.Kind, b.Operator, b.Tensor, b.Input = b.Kind[:0], b.Operator[:0], b.Tensor[:0], b.Input[:0]
	b.Name, b.Type, b.Phase, b.Layer = b.Name[:0], b.Type[:0], b.Phase[:0], b.Layer[:0]
	b.DurationNS, b.BaseBytes, b.Bytes = b.DurationNS[:0], b.BaseBytes[:0], b.Bytes[:0]
	b.RecomputeNS, b.RowBytes = b.RecomputeNS[:0], b.RowBytes[:0]
	b.Role, b.Saved, b.Version, b.DType, b.Shape = b.Role[:0], b.Saved[:0], b.Version[:0], b.DType[:0], b.Shape[:0]
	b.Origin = b.Origin[:0]
}
