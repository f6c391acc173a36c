package capture

import (
	"math"

	"gm/formats/column"
	"gm/formats/trace"
	"gm/internal/capture/live"
)

// rows takes rows of the driver's level into a batch, in one order of time.
type rows struct {
	texts texts
	batch trace.Batch
	last  int64 // time of the last row
	total int64 // bytes that the sizes add up to
}

func newRows() rows { return rows{texts: newTexts()} }

// row implements rowWriter. Threads take their times before their turns, so times may run backwards a little: they are held.
func (b *rows) row(e trace.Event, tag, pool, stack string) {
	e.Tag, e.Pool, e.Stack = b.texts.code(tag), b.texts.code(pool), b.texts.code(stack)
	e.TimeNS = max(e.TimeNS, b.last)
	b.last = e.TimeNS
	b.bound(&e)
	b.batch.Append(e)
}

// bound makes a row fit into a trace, whatever the record said that it is of: the driver's rows may be half of what the sizes of all add up to.
func (b *rows) bound(e *trace.Event) {
	e.Size = min(e.Size, max(trace.MaxTotal/2-b.total, 1))
	b.total += e.Size
	if e.Op == trace.OpOOM {
		e.Addr = min(e.Addr, trace.MaxTotal)
	}
	e.Addr = min(e.Addr, math.MaxUint64-uint64(e.Size))
}

// liveRows takes rows into an account of what lives.
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

// texts are the distinct texts of the driver's rows: a part of what a trace may have, since a framework has texts as well.
type texts struct {
	strings *column.Strings
	bytes   int
}

const (
	maxTexts     = column.MaxStrings / 4
	maxTextBytes = column.MaxTexts / 4
	// beyondTexts stands for what is too much.
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
