package check

import (
	"fmt"
	"strings"

	"gm/formats/plan"
)

// repeats checks that the plan is valid when its rows are repeated without end: no two repeated tensors share a byte at the same time of a
// period. It returns the number of repeated tensors. at returns the time of a row, on a clock that may stand still. For tensors older
// than the plan's rows [checked.sweep] is enough: a tensor that takes their place does so in these rows.
func (c *checked) repeats(at func(row int64) int64) (int, error) {
	if c.meta.Period == 0 {
		return 0, nil
	}
	begin := at(c.meta.First)
	period := at(c.meta.End) - begin
	var lives []life
	repeated := 0
	for i := range c.tensors {
		t := &c.tensors[i]
		if t.Alloc < c.meta.First || t.Alloc >= c.meta.End || !strings.HasSuffix(c.text(t.Arena), plan.Repeated) {
			continue
		}
		start, end := at(t.Alloc)-begin, at(t.Free)-begin
		if end-start > period || t.Free == c.meta.Rows {
			return 0, fmt.Errorf("row %d: tensor %d lives longer than a period, in arena %s, which is repeated", i, t.ID, c.text(t.Arena))
		}
		repeated++
		lives = append(lives, life{i, start, min(end, period)})
		if end > period {
			lives = append(lives, life{i, 0, end - period})
		}
	}
	return repeated, c.sweep(lives, c.explainRepeated)
}

// explainRepeated returns the error for two lives that overlap when they are repeated.
func (c *checked) explainRepeated(x, y life) error {
	a, b := &c.tensors[x.tensor], &c.tensors[y.tensor]
	return fmt.Errorf("row %d: tensor %d [%#x, %#x) overlaps tensor %d [%#x, %#x) of row %d in arena %s when they are repeated (rows %d to %d of a period)",
		x.tensor, a.ID, a.Offset, c.end(a), b.ID, b.Offset, c.end(b), y.tensor, c.text(a.Arena),
		max(x.start, y.start), min(x.end, y.end))
}
