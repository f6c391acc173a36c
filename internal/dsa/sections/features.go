package sections

import "math"

// Features are the properties that buffers are ranked by, one column each. A part of an instance keeps the features of the whole.
type Features struct {
	Life     []float64 // W: length of the life, in the problem's time
	Sections []float64 // V: number of sections lived in
	Size     []float64 // Z: units
	Load     []float64 // T: the greatest load during the life, units
	from     []float64 // L: first section
	to       []float64 // U: section after the last
}

// newFeatures returns the features of the buffers of an instance.
func newFeatures(in *Instance, life []float64) Features {
	f := Features{
		Life: life, Sections: make([]float64, in.Len()), Size: make([]float64, in.Len()), Load: peakLoads(in),
		from: make([]float64, in.Len()), to: make([]float64, in.Len()),
	}
	for k := range f.Size {
		f.Sections[k] = float64(in.Hi[k] - in.Lo[k])
		f.Size[k] = float64(in.Size[k])
		f.from[k], f.to[k] = float64(in.Lo[k]), float64(in.Hi[k])
	}
	return f
}

// peakLoads returns, for each buffer, the greatest load of the sections it lives in.
func peakLoads(in *Instance) []float64 {
	n := in.Sections()
	tree := make([]int64, 2*n) // node i covers what 2i and 2i+1 cover; the leaves are n to 2n
	copy(tree[n:], in.Load)
	for i := n - 1; i > 0; i-- {
		tree[i] = max(tree[2*i], tree[2*i+1])
	}
	loads := make([]float64, in.Len())
	for k := range loads {
		top := int64(0)
		for a, b := int(in.Lo[k])+n, int(in.Hi[k])+n; a < b; a, b = a/2, b/2 {
			if a&1 == 1 {
				top = max(top, tree[a])
				a++
			}
			if b&1 == 1 {
				b--
				top = max(top, tree[b])
			}
		}
		loads[k] = float64(top)
	}
	return loads
}

// pick returns the features of some buffers.
func (f Features) pick(buffers []int32) Features {
	pick := func(from []float64) []float64 {
		to := make([]float64, len(buffers))
		for i, k := range buffers {
			to[i] = from[k]
		}
		return to
	}
	return Features{pick(f.Life), pick(f.Sections), pick(f.Size), pick(f.Load), pick(f.from), pick(f.to)}
}

// fill writes the property of a letter of a key for each buffer.
func (f Features) fill(column []float64, letter byte) {
	switch letter {
	case 'W':
		copy(column, f.Life)
	case 'V':
		copy(column, f.Sections)
	case 'Z':
		copy(column, f.Size)
	case 'T':
		copy(column, f.Load)
	case 'L':
		copy(column, f.from)
	case 'U':
		copy(column, f.to)
	case 'A':
		for k := range column {
			column[k] = f.Life[k] * f.Size[k]
		}
	case 'S':
		for k := range column {
			column[k] = f.Sections[k] * f.Size[k]
		}
	default:
		panic("BUG: no feature " + string(letter))
	}
}

// mix is a set of weights for the features.
type mix struct {
	life, sections, size float64 // of their logarithms
	load                 float64 // of the load as a fraction of the greatest
	noise                float64 // of a number around 0 that differs from buffer to buffer
	seed                 uint64  // of the noise
}

// fillMix writes the weighted sum of the features of each buffer; id makes the noise differ between buffers.
func (f Features) fillMix(column []float64, id []int32, bound int64, m mix) {
	for k := range column {
		column[k] = m.life*math.Log(f.Life[k]) + m.sections*math.Log(f.Sections[k]) + m.size*math.Log(f.Size[k]) +
			m.load*f.Load[k]/float64(bound) + m.noise*bell(m.seed+uint64(id[k]))
	}
}

// bell hashes a number to a sum of four uniform numbers, with mean 0 and variance 1 (the hash is the finalizer of SplitMix64).
func bell(x uint64) float64 {
	x *= 0x9e3779b97f4a7c15
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	x ^= x >> 31
	sum := float64(x&0xffff + x>>16&0xffff + x>>32&0xffff + x>>48)
	return (sum - 2*0xffff) / (0xffff / math.Sqrt(3))
}
