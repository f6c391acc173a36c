package capture

import (
	"math"

	"gm/formats/column"
	"gm/formats/trace"
	"gm/internal/capture/live"
)

// rows collects rows of the driver's level in a batch, in order of time.
type rows struct {
	texts texts
	batch trace.Batch
	last  int64 // time of the last row
	total int64 // sum of the sizes, in bytes
}

func newRows() rows { return rows{texts: newTexts()} }

// row implements rowWriter. A thread reads the clock before it claims its slots, so times may run backwards a little: such a row gets the
// time of the row before.
func (b *rows) row(e trace.Event, tag, pool, stack string) {
	e.Tag, e.Pool, e.Stack = b.texts.code(tag), b.texts.code(pool), b.texts.code(stack)
	e.TimeNS = max(e.TimeNS, b.last)
	b.last = e.TimeNS
	b.bound(&e)
	b.batch.Append(e)
}

// bound forces a row into the limits of a trace, whatever its record contains. The driver's rows may have half of the total size of all
// rows.
func (b *rows) bound(e *trace.Event) {
	e.Size = min(e.Size, max(trace.MaxTotal/2-b.total, 1))
	b.total += e.Size
	if e.Op == trace.OpOOM {
		e.Addr = min(e.Addr, trace.MaxTotal)
	}
	e.Addr = min(e.Addr, math.MaxUint64-uint64(e.Size))
}

// liveRows adds rows to an account of what lives.
type liveRows struct {
	texts   texts
	last    int64 // time of the last row
	account *live.Driver
}

func newLiveRows() *liveRows {
	t := newTexts()
	return &liveRows{texts: t, account: live.NewDriver(t.strings)}
}

// row implements rowWriter.
func (l *liveRows) row(e trace.Event, tag, pool, stack string) {
	e.Tag, e.Pool, e.Stack = l.texts.code(tag), l.texts.code(pool), l.texts.code(stack)
	e.TimeNS = max(e.TimeNS, l.last)
	l.last = e.TimeNS
	l.account.Add(&e)
}

// texts are the distinct texts of the driver's rows. They are limited to a part of what a trace may hold; the rest is for the framework's.
type texts struct {
	strings *column.Strings
	bytes   int
}

const (
	maxTexts     = column.MaxStrings / 4
	maxTextBytes = column.MaxTexts / 4
	// beyondTexts replaces texts beyond the limit.
	beyondTexts = "(more than a trace holds)"
)

func newTexts() texts { return texts{strings: column.NewStrings()} }

// code returns the number of a text.
func (t *texts) code(text string) int32 {
	if t.strings.Len() >= maxTexts || t.bytes >= maxTextBytes {
		if code, ok := t.strings.Known(text); ok {
			return code
		}
		text = beyondTexts
	}
	before := t.strings.Len()
	code := t.strings.Code(text)
	if int(code) == before {
		t.bytes += len(text)
	}
	return code
}
