package tags

import (
	"fmt"

	"gm/formats/trace"
)

// batchRows is how many rows are written at a time.
const batchRows = 16 << 10

// Write copies a trace to w, which it leaves open, with the labels that were derived from it: in the column derived and, where it is empty,
// in the column tag. Tags of the trace itself stay as they are.
func (t *Tags) Write(r *trace.Reader, w *trace.Writer) error {
	*w.Meta() = r.Meta()
	c := &copier{tags: t, r: r, w: w, codes: map[int32]int32{}}
	err := trace.Each(r, func(_ int64, e *trace.Event) error { return c.add(*e) })
	if err == nil {
		err = w.Write(&c.batch)
	}
	if err != nil {
		return fmt.Errorf("tag %s: %w", r.Name(), err)
	}
	return nil
}

// copier copies rows from one trace to another.
type copier struct {
	tags  *Tags
	r     *trace.Reader
	w     *trace.Writer
	codes map[int32]int32 // of texts in w, by those in r
	batch trace.Batch
}

// add copies a row.
func (c *copier) add(e trace.Event) error {
	e.Pool, e.Stack, e.Tag, e.Derived = c.code(e.Pool), c.code(e.Stack), c.code(e.Tag), c.code(e.Derived)
	if e.Op == trace.OpAlloc && e.Level == trace.LevelFramework {
		if l := c.tags.Of(e.ID); l.Certainty == Inferred || l.Certainty == Guessed {
			e.Derived = c.w.Strings().Code(trace.Derived{Tag: l.Tag, Certainty: string(l.Certainty), Rule: l.Rule}.String())
			if e.Tag == 0 {
				e.Tag = c.w.Strings().Code(l.Tag)
			}
		}
	}
	c.batch.Append(e)
	if c.batch.Len() < batchRows {
		return nil
	}
	err := c.w.Write(&c.batch)
	c.batch.Reset()
	return err
}

// code returns the code in w of a text of r.
func (c *copier) code(old int32) int32 {
	code, ok := c.codes[old]
	if !ok {
		code = c.w.Strings().Code(c.r.Strings().Text(old))
		c.codes[old] = code
	}
	return code
}
