// Package timeline writes a simulated step in the JSON of Chrome's tracing (the Trace Event Format), which ui.perfetto.dev and chrome://tracing show:
// a thread for each lane, and counters of the memory in use.
package timeline

import (
	"bufio"
	"encoding/json"
	"io"
	"time"

	"gm/internal/swap/simulate"
)

// Timeline is the spans of a step.
type Timeline struct {
	Name  string // of the step
	spans []simulate.Span
}

// Add adds a span. It can be what simulate.Run calls.
func (t *Timeline) Add(s simulate.Span) { t.spans = append(t.spans, s) }

// event is one of a trace. Times are in microseconds.
type event struct {
	Phase    string         `json:"ph"`
	Name     string         `json:"name"`
	Category string         `json:"cat,omitempty"`
	Process  int            `json:"pid"`
	Thread   int            `json:"tid"`
	Time     float64        `json:"ts"`
	Duration *float64       `json:"dur,omitempty"`
	Args     map[string]any `json:"args,omitempty"`
}

// The phases of events.
const (
	metadata = "M"
	complete = "X"
	counter  = "C"
)

// process is the number of the one process that there is, which has to have one.
const process = 1

var lanes = [...]string{simulate.Compute: "compute", simulate.Out: "copies to the host", simulate.In: "copies to the device"}

// Write writes the trace.
func (t *Timeline) Write(w io.Writer) error {
	out := &writer{w: bufio.NewWriter(w)}
	out.text(`{"displayTimeUnit": "ms", "traceEvents": [`)
	out.event(&event{Phase: metadata, Name: "process_name", Args: map[string]any{"name": t.Name}})
	for i, name := range lanes {
		out.event(&event{Phase: metadata, Name: "thread_name", Thread: i + 1, Args: map[string]any{"name": name}})
		out.event(&event{Phase: metadata, Name: "thread_sort_index", Thread: i + 1, Args: map[string]any{"sort_index": i}})
	}
	for i := range t.spans {
		out.span(&t.spans[i])
	}
	out.text("\n]}\n")
	if out.err != nil {
		return out.err
	}
	return out.w.Flush()
}

// writer writes events, up to the first error.
type writer struct {
	w      *bufio.Writer
	events int
	err    error
}

func (w *writer) text(text string) {
	if w.err == nil {
		_, w.err = w.w.WriteString(text)
	}
}

func (w *writer) event(e *event) {
	if w.events > 0 {
		w.text(",")
	}
	w.events++
	e.Process = process
	text, err := json.Marshal(e)
	if err != nil && w.err == nil {
		w.err = err
	}
	w.text("\n" + string(text))
}

// span writes an event for the span and, for an operator, the memory that is in use from its beginning on.
func (w *writer) span(s *simulate.Span) {
	took := micro(s.End - s.Begin)
	e := &event{Phase: complete, Name: s.Name, Thread: int(s.Lane) + 1, Time: micro(s.Begin), Duration: &took, Category: category(s)}
	if e.Name == "" {
		e.Name = e.Category
	}
	if s.Tensor >= 0 {
		e.Args = map[string]any{"tensor": s.Tensor}
	}
	w.event(e)
	if s.Tensor >= 0 {
		return
	}
	w.event(&event{Phase: counter, Name: "device memory", Time: e.Time, Args: map[string]any{"tensors": s.Tensors, "others": s.Base}})
	w.event(&event{Phase: counter, Name: "host memory", Time: e.Time, Args: map[string]any{"copies": s.Host}})
}

// category says what a span is.
func category(s *simulate.Span) string {
	switch {
	case s.Wait:
		return "wait"
	case s.Lane != simulate.Compute:
		return "copy"
	case s.Tensor >= 0:
		return "recompute"
	}
	return "operator"
}

func micro(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
