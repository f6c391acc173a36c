package exporter

import (
	"encoding/json"
	"fmt"
	"math/bits"
	"strings"

	"gm/formats/trace"
	"gm/internal/report"
	"gm/internal/trace/tags"
	"gm/internal/units"
)

// timeline exports a trace as JSON for Chrome's and Perfetto's viewers, in their Trace Event Format: one process per GPU, with
// counters and a bar for each large block.
type timeline struct {
	*export
	survey  *survey
	labels  *tags.Tags
	least   int64 // bytes of the smallest block that has a bar
	devices map[int32]*track
	first   bool // nothing has been written yet
	stacks  map[int32]barStack
}

// track is the state of one GPU.
type track struct {
	process             int32            // the GPU's number as a process, never 0
	live                map[int64]int64  // bytes of the framework's blocks, by id
	given               map[int64]int64  // bytes of the driver's, by id
	bars                map[int64]string // names, as JSON, of the blocks whose bars have begun, by id
	allocated, reserved counter
	driver              counter
	card, used          counter // as measured by NVML
}

// Blocks get a bar if they have at least leastBar bytes, or more if there would be more than mostBars bars.
const (
	leastBar = 1 << 20
	mostBars = 50_000
)

// perfetto writes counters, marks, failed requests and large blocks.
func (x *export) perfetto() error {
	s, err := x.survey()
	if err != nil {
		return err
	}
	labels, err := x.labels()
	if err != nil {
		return err
	}
	t := &timeline{export: x, survey: s, labels: labels, least: s.leastBar(), devices: map[int32]*track{}, first: true, stacks: map[int32]barStack{}}
	x.out.WriteString(`{"displayTimeUnit":"ns","traceEvents":[`)
	for _, device := range s.used() {
		name := fmt.Sprintf("GPU %d", device)
		if int(device) < len(s.meta.Devices) {
			name += ", " + s.meta.Devices[device]
		}
		t.event(`"ph":"M","pid":%d,"name":"process_name","args":{"name":%s}`, device+1, quote(name))
		t.devices[device] = newTrack(device + 1)
	}
	err = x.each(func(r *trace.Reader, _ int64, e *trace.Event) error {
		t.row(r, e)
		return nil
	})
	if err != nil {
		return err
	}
	for _, device := range s.used() {
		t.finish(t.devices[device])
	}
	if err := t.spans(); err != nil {
		return err
	}
	fmt.Fprintf(x.out, "\n],\"otherData\":{\"source\":%s,\"start_ns\":\"%d\",\"smallest_block\":\"%d\"}}\n", quote(s.meta.Source), s.start, t.least)
	return nil
}

// leastBar returns the size of the smallest block that gets a bar, in bytes.
func (s *survey) leastBar() int64 {
	n := int64(0)
	for size := len(s.sizes) - 1; size > bits.Len64(leastBar-1); size-- {
		if n += s.sizes[size]; n > mostBars {
			return 1 << size
		}
	}
	return leastBar
}

func newTrack(process int32) *track {
	return &track{
		process: process, live: map[int64]int64{}, given: map[int64]int64{}, bars: map[int64]string{},
		allocated: counter{name: "allocated"}, reserved: counter{name: "reserved"}, driver: counter{name: "from the driver"},
		card: counter{name: "used on the card"}, used: counter{name: "used by the process"},
	}
}

// event writes one event; the fields include its time and place.
func (t *timeline) event(fields string, args ...any) {
	if !t.first {
		t.out.WriteByte(',')
	}
	t.first = false
	t.out.WriteString("\n{")
	fmt.Fprintf(t.out, fields, args...)
	t.out.WriteByte('}')
}

// at returns a time in the unit of the viewers: microseconds since the first row.
func (t *timeline) at(timeNS int64) string {
	since := timeNS - t.survey.start
	return fmt.Sprintf("%d.%03d", since/nsPerUS, since%nsPerUS)
}

// row writes the events of a row.
func (t *timeline) row(r *trace.Reader, e *trace.Event) {
	if e.Op == trace.OpMark {
		t.event(`"ph":"i","s":"g","pid":%d,"tid":0,"ts":%s,"name":%s`, e.Device+1, t.at(e.TimeNS), quote(r.Strings().Text(e.Tag)))
		return
	}
	d := t.devices[e.Device]
	if d == nil {
		return
	}
	switch {
	case e.Op == trace.OpOOM:
		t.event(`"ph":"i","s":"p","pid":%d,"tid":0,"ts":%s,"name":"OOM","args":{"requested":%d,"free":%d,"stack":%s}`,
			d.process, t.at(e.TimeNS), e.Size, e.Addr, quote(t.stack(r, e.Stack).long))
	case e.Op == trace.OpSample:
		to := &d.card
		if trace.Kind(r.Strings().Text(e.Tag)) == trace.KindProcess {
			to = &d.used
		}
		t.count(d, to, e.TimeNS, e.Size-to.value)
	case e.Level == trace.LevelDriver:
		t.driverRow(d, r, e)
	default:
		t.frameworkRow(d, e)
	}
	if t.survey.exported(e) {
		t.bar(d, r, e)
	}
}

func (t *timeline) frameworkRow(d *track, e *trace.Event) {
	switch e.Op {
	case trace.OpAlloc:
		d.live[e.ID] = e.Size
		t.count(d, &d.allocated, e.TimeNS, e.Size)
	case trace.OpFree, trace.OpFreeCompleted:
		t.count(d, &d.allocated, e.TimeNS, -d.live[e.ID])
		delete(d.live, e.ID)
	case trace.OpSegmentAlloc, trace.OpSegmentMap:
		t.count(d, &d.reserved, e.TimeNS, e.Size)
	case trace.OpSegmentFree, trace.OpSegmentUnmap:
		t.count(d, &d.reserved, e.TimeNS, -e.Size)
	}
}

// driverRow tracks the device memory obtained from the driver.
func (t *timeline) driverRow(d *track, r *trace.Reader, e *trace.Event) {
	switch e.Op {
	case trace.OpAlloc:
		if onDevice(r, e) {
			d.given[e.ID] = e.Size
			t.count(d, &d.driver, e.TimeNS, e.Size)
		}
	case trace.OpFree, trace.OpFreeCompleted:
		t.count(d, &d.driver, e.TimeNS, -d.given[e.ID])
		delete(d.given, e.ID)
	case trace.OpSegmentAlloc:
		t.count(d, &d.driver, e.TimeNS, e.Size)
	case trace.OpSegmentFree:
		t.count(d, &d.driver, e.TimeNS, -e.Size)
	}
}

// barStack is a stack, innermost frame first, in the short form for the name of a bar and the long form for its arguments.
type barStack struct{ short, long string }

// The lengths of both forms, in characters.
const (
	shortStack = 60
	longStack  = 600
)

func (t *timeline) stack(r *trace.Reader, code int32) barStack {
	s, known := t.stacks[code]
	if !known {
		if folded := r.Strings().Text(code); folded != "" {
			s = barStack{report.Stack(folded, shortStack), report.Stack(folded, longStack)}
		}
		t.stacks[code] = s
	}
	return s
}

// bar begins or ends the bar of a large block.
func (t *timeline) bar(d *track, r *trace.Reader, e *trace.Event) {
	switch e.Op {
	case trace.OpAlloc:
		if e.Size < t.least || e.Level == trace.LevelDriver && !onDevice(r, e) {
			return
		}
		name, stack := units.Bytes(e.Size).String(), t.stack(r, e.Stack)
		if stack.short != "" {
			name += ", " + stack.short
		}
		d.bars[e.ID] = quote(name)
		label := labelOf(t.labels, r.Strings(), e)
		t.event(`"ph":"b","cat":"block","id":%d,"pid":%d,"tid":0,"ts":%s,"name":%s,"args":{"bytes":%d,"stream":%d,"address":"%#x","stack":%s,"tag":%s,"certainty":%s,"rule":%s}`,
			e.ID, d.process, t.at(e.TimeNS), d.bars[e.ID], e.Size, e.Stream, e.Addr, quote(stack.long), quote(label.Tag), quote(string(label.Certainty)), quote(label.Rule))
	case trace.OpFree, trace.OpFreeCompleted:
		t.endBar(d, e.ID, e.TimeNS)
	}
}

func (t *timeline) endBar(d *track, id, timeNS int64) {
	if name, begun := d.bars[id]; begun {
		delete(d.bars, id)
		t.event(`"ph":"e","cat":"block","id":%d,"pid":%d,"tid":0,"ts":%s,"name":%s`, id, d.process, t.at(timeNS), name)
	}
}

// quote returns a text as a JSON string.
func quote(text string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(text); err != nil {
		panic("BUG: a string as JSON: " + err.Error())
	}
	return strings.TrimSuffix(b.String(), "\n")
}
