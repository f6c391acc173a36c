package overview

// maxPoints is the most points of a curve.
const maxPoints = 4096

// curve is live bytes over a trace: the maximum in each of up to 4096 sections of equally many rows.
type curve struct {
	stride int64
	timeNS []int64 // of the device's first row in each section
	bytes  []int64
	last   int64 // number of the last section
}

func newCurve(rows int64) curve { return curve{stride: rows/maxPoints + 1, last: -1} }

func (c *curve) add(row, timeNS, bytes int64) {
	if n := row / c.stride; n != c.last {
		c.last = n
		c.timeNS = append(c.timeNS, timeNS)
		c.bytes = append(c.bytes, bytes)
		return
	}
	i := len(c.bytes) - 1
	c.bytes[i] = max(c.bytes[i], bytes)
}

// columns resamples the curve in equal intervals of time. An interval without rows has the bytes that were live before it.
func (c *curve) columns(startNS, endNS int64, n int) []float64 {
	out := make([]float64, n)
	i, live := 0, int64(0)
	for col := range out {
		end := startNS + int64(float64(endNS-startNS)*float64(col+1)/float64(n))
		most := live
		for ; i < len(c.timeNS) && (c.timeNS[i] <= end || col == n-1); i++ {
			live = c.bytes[i]
			most = max(most, live)
		}
		out[col] = float64(most)
	}
	return out
}
