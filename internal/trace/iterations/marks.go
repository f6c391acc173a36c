package iterations

import "strings"

// Marks collects the marks of a trace that end iterations: those named step, or otherwise those of PyTorch's profiler at the end of an
// optimizer's step. If several optimizers take turns, the iterations end with that of the last mark.
type Marks struct {
	steps []int64 // rows
	byEnd map[string][]int64
	last  string
}

// Step is the tag of a mark that ends an iteration.
const Step = "step"

// The tags of PyTorch's profiler at an optimizer's step begin and end with these; START is at its beginning.
const (
	optimizerMark = "Optimizer.step#"
	optimizerEnd  = " END"
)

// Add processes a mark and reports whether it is kept. Rows ascend.
func (m *Marks) Add(tag string, row int64) bool {
	switch {
	case tag == Step:
		m.steps = append(m.steps, row)
	case strings.HasPrefix(tag, optimizerMark) && strings.HasSuffix(tag, optimizerEnd):
		if m.byEnd == nil {
			m.byEnd = map[string][]int64{}
		}
		m.byEnd[tag] = append(m.byEnd[tag], row)
		m.last = tag
	default:
		return false
	}
	return true
}

// Ends returns the rows of the marks that end iterations.
func (m *Marks) Ends() []int64 {
	if len(m.steps) > 0 {
		return m.steps
	}
	return m.byEnd[m.last]
}

// Section is the rows [First, End) of a trace.
type Section struct {
	First int64 `json:"first_row"`
	End   int64 `json:"end_row"`
}

// Sections returns the iterations of a device, which are numbered from 0: those that [Find] finds or, if two or more marks end another
// number of iterations, those that end with the marks. Then the first one begins with the trace.
func Sections(found []Section, ends []int64) (all []Section, marked bool) {
	if len(ends) < 2 || len(ends) == len(found) {
		return found, false
	}
	first := int64(0)
	for _, end := range ends {
		all = append(all, Section{first, end + 1})
		first = end + 1
	}
	return all, true
}
