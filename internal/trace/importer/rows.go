package importer

import (
	"fmt"
	"strings"

	parquet "gm/formats/column"
	"gm/formats/trace"
	"gm/internal/trace/recording"
)

const (
	batchRows = 16 << 10

	// maxLive bounds the allocations that are live at once. An import keeps them in memory, at about 60 bytes each, and
	// their ids if these are texts.
	maxLive = trace.MaxLive

	// maxText bounds the length of a text in a row, in bytes.
	maxText = 64 << 10

	// maxTexts and maxTextBytes bound the distinct texts of a trace below the limits of its readers.
	maxTexts     = parquet.MaxStrings / 2
	maxTextBytes = parquet.MaxTexts / 2
)

// rows writes rows, numbers allocations and counts oddities.
type rows struct {
	out   *trace.Writer
	warn  func(string)
	batch trace.Batch
	id    int64 // of the last allocation
	clock recording.Clock
	odd   oddities
	texts int // bytes of the distinct texts
}

// oddities counts corrections. Each kind gives one warning.
type oddities struct {
	empty     int
	replaced  int
	unmatched int
	texts     int
	cut       int
	gaps      int
	tied      int
	arenas    int
}

func newRows(out *trace.Writer, warn func(string)) *rows { return &rows{out: out, warn: warn} }

// write adds a row. A time before that of the previous row is set to the latter.
func (r *rows) write(e trace.Event) error {
	e.TimeNS = r.clock.Add(e.TimeNS)
	r.batch.Append(e)
	if r.batch.Len() < batchRows {
		return nil
	}
	return r.flush()
}

func (r *rows) flush() error {
	err := r.out.Write(&r.batch)
	r.batch.Reset()
	return err
}

// alloc adds the row of an allocation and returns its id.
func (r *rows) alloc(e trace.Event) (int64, error) {
	r.id++
	e.Op, e.ID = trace.OpAlloc, r.id
	return r.id, r.write(e)
}

// text returns the code of a text for a row; 0 if there is no room for more texts.
func (r *rows) text(text string) int32 {
	if text == "" {
		return 0
	}
	if len(text) > maxText {
		text = text[:maxText]
	}
	codes := r.out.Strings()
	known := codes.Len()
	if known >= maxTexts || r.texts >= maxTextBytes {
		r.odd.texts++
		return 0
	}
	code := codes.Code(text)
	if codes.Len() > known {
		r.texts += len(text)
	}
	return code
}

// stack is text for a folded stack, of which whole outermost frames are left out where it is too long.
func (r *rows) stack(folded string) int32 {
	if len(folded) > maxText {
		r.odd.cut++
		folded = innermost(folded)
	}
	return r.text(folded)
}

// innermost returns the innermost frames of a folded stack that is too long.
func innermost(folded string) string {
	const leftOut = "...;"
	from := len(folded) - (maxText - len(leftOut))
	if i := strings.IndexByte(folded[from-1:], ';'); i >= 0 {
		return leftOut + folded[from+i:]
	}
	return folded[strings.LastIndexByte(folded, ';')+1:]
}

// finish writes the remaining rows and emits the warnings.
func (r *rows) finish() error {
	if err := r.flush(); err != nil {
		return err
	}
	for _, w := range []struct {
		n    int
		text string
	}{
		{r.odd.empty, "allocations of no bytes, or freed at once, are left out"},
		{r.odd.replaced, "allocations are at the address of a live one, which is freed there"},
		{r.odd.unmatched, "frees are of addresses where nothing is live: they are left out"},
		{r.odd.texts, "texts are left out: there are too many distinct ones"},
		{r.odd.cut, "rows have stacks that are too long: their outermost frames are left out"},
		{r.odd.gaps, "buffers have gaps in their lifetimes: they count as live there"},
		{r.odd.tied, "buffers are the same_as or next_to others: a trace does not say so, gmplan solve heeds it"},
		{r.odd.arenas, "buffers name an arena: a trace does not say so, gmplan solve heeds it"},
	} {
		if w.n > 0 {
			r.warn(fmt.Sprintf("%d %s", w.n, w.text))
		}
	}
	for _, text := range []string{r.clock.Backward(), r.clock.Forward()} {
		if text != "" {
			r.warn(text)
		}
	}
	return nil
}

// blocks matches frees with allocations by address.
type blocks struct {
	out  *rows
	live map[uint64]trace.Event
}

func newBlocks(out *rows) *blocks { return &blocks{out: out, live: make(map[uint64]trace.Event)} }

// alloc adds an allocation at its address.
func (b *blocks) alloc(e trace.Event) error {
	if e.Size == 0 {
		b.out.odd.empty++
		return nil
	}
	if old, ok := b.live[e.Addr]; ok {
		b.out.odd.replaced++
		old.TimeNS, old.Op = e.TimeNS, trace.OpFree
		if err := b.out.write(old); err != nil {
			return err
		}
	} else if len(b.live) >= maxLive {
		return errTooManyLive
	}
	var err error
	e.ID, err = b.out.alloc(e)
	b.live[e.Addr] = e
	return err
}

var errTooManyLive = fmt.Errorf("more than %d allocations are live at once", maxLive)

// free adds the free of the allocation at an address. Frees of null pointers are ignored.
func (b *blocks) free(e trace.Event) error {
	old, ok := b.live[e.Addr]
	if !ok {
		if e.Addr != 0 {
			b.out.odd.unmatched++
		}
		return nil
	}
	delete(b.live, e.Addr)
	e.Op, e.ID = trace.OpFree, old.ID
	return b.out.write(e)
}
