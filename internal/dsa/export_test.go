package dsa

// Overlap finds overlaps for [Check].
func Overlap(p *Problem, buffers []int32, offsets []int64) (a, b int32, found bool) {
	return p.overlap(buffers, offsets)
}
