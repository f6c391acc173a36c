package importer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"gm/formats/trace"
	"gm/internal/jsonvalue"
)

// kineto is a profile of torch.profiler, as far as it is about memory. Its events are in no order of time.
type kineto struct {
	take    func(*kinetoEvent) error // what is done with an event
	base    int64                    // ns since the Unix epoch, to which all times are relative; before the events in what PyTorch writes
	devices []kinetoDevice
	rank    kinetoRank
	moves   []kinetoMove
	marks   []kinetoMark
	threads map[string]*kinetoThread
	names   kinetoNames
	flows   kinetoFlows
	spans   int // of all threads, and ends of arrows
	text    int // bytes of names, of threads and of marks
}

// kinetoDevice is a GPU of the machine.
type kinetoDevice struct {
	ID     int32  `json:"id"`
	Name   string `json:"name"`
	Memory int64  `json:"totalGlobalMem"` // bytes
}

// kinetoRank is the process's place in a distributed job.
type kinetoRank struct {
	Rank      int64 `json:"rank"`
	WorldSize int64 `json:"world_size"`
}

// kinetoMove is an allocation, a free or a failed request.
type kinetoMove struct {
	ns     int64 // since base
	bytes  int64 // negative in a free
	addr   uint64
	total  int64 // bytes in use on the device after it
	device int32
	host   bool
	failed bool
	thread *kinetoThread
}

// kinetoMark is the beginning or end of an annotation.
type kinetoMark struct {
	ns   int64
	text string
}

// kinetoEvent is an event of Chrome's format.
type kinetoEvent struct {
	Phase    string          `json:"ph"`
	Category string          `json:"cat"`
	Name     string          `json:"name"`
	ID       json.RawMessage `json:"id"` // of an arrow
	Process  json.RawMessage `json:"pid"`
	Thread   json.RawMessage `json:"tid"`
	Time     json.Number     `json:"ts"`  // microseconds
	Duration json.Number     `json:"dur"` // microseconds
	Args     json.RawMessage `json:"args"`
}

// The names of instants about memory.
const (
	kinetoMemory = "[memory]"
	kinetoOOM    = "[OutOfMemory]"
)

// read reads the JSON. It ends at the end of src.
func (k *kineto) read(src io.Reader) error {
	d := &kinetoDecoder{src: src}
	d.Decoder = json.NewDecoder(d)
	if err := expect(d, json.Delim('{')); err != nil {
		return err
	}
	for d.More() {
		key, err := d.Token()
		if err == nil {
			err = k.field(d, key)
		}
		if err != nil {
			return err
		}
	}
	if err := expect(d, json.Delim('}')); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("byte %d: more after the end of the profile", d.InputOffset())
	}
	return nil
}

// field reads the value of a key.
func (k *kineto) field(d *kinetoDecoder, key json.Token) error {
	var to any = &json.RawMessage{}
	switch key {
	case "traceEvents":
		return k.events(d)
	case "baseTimeNanoseconds":
		to = &k.base
	case "deviceProperties":
		to = &k.devices
	case "distributedInfo":
		to = &k.rank
	}
	if err := jsonvalue.Explain(d.Decode(to)); err != nil {
		return fmt.Errorf("%v: %w", key, err)
	}
	return nil
}

// events reads the list of events.
func (k *kineto) events(d *kinetoDecoder) error {
	if err := expect(d, json.Delim('[')); err != nil {
		return err
	}
	for n := 0; d.More(); n++ {
		var e kinetoEvent
		err := jsonvalue.Explain(d.Decode(&e))
		if err == nil {
			err = k.take(&e)
		}
		if err == nil {
			err = k.full()
		}
		if err != nil {
			return fmt.Errorf("event %d: %w", n, err)
		}
	}
	return expect(d, json.Delim(']'))
}

func expect(d *kinetoDecoder, want json.Delim) error {
	switch got, err := d.Token(); {
	case errors.Is(err, io.EOF):
		return fmt.Errorf("byte %d: %w", d.InputOffset(), io.ErrUnexpectedEOF)
	case err != nil:
		return fmt.Errorf("byte %d: %w", d.InputOffset(), err)
	case got != want:
		return fmt.Errorf("byte %d: %s, expected %v", d.InputOffset(), tokenText(got), want)
	}
	return nil
}

// tokenText returns a token as it stands in JSON.
func tokenText(t json.Token) string {
	switch t := t.(type) {
	case nil:
		return "null"
	case string:
		return strconv.Quote(clip(t))
	}
	return fmt.Sprint(t)
}

// event keeps what an event says of memory, of annotations or of stacks.
func (k *kineto) event(e *kinetoEvent) error {
	switch {
	case e.Phase == "i" && (e.Name == kinetoMemory || e.Name == kinetoOOM):
		return k.move(e)
	case e.Category == "fwdbwd" && (e.Phase == "s" || e.Phase == "f"):
		return k.flow(e)
	case e.Phase != "X":
		return nil
	}
	switch e.Category {
	case "user_annotation", "cpu_op", "python_function":
	default:
		return nil
	}
	begin, err := nanoseconds(e.Time)
	if err != nil {
		return fmt.Errorf("ts: %w", err)
	}
	length, err := nanoseconds(e.Duration)
	if err != nil {
		return fmt.Errorf("dur: %w", err)
	}
	if e.Category != "user_annotation" {
		t := k.thread(e)
		t.spans = append(t.spans, kinetoSpan{begin: begin, end: begin + length, name: k.frame(e.Name)})
		k.spans++
		return nil
	}
	name := e.Name[:min(len(e.Name), maxFrame)]
	k.text += 2 * (len(name) + textCost)
	k.marks = append(k.marks, kinetoMark{begin, name + " START"}, kinetoMark{begin + length, name + " END"})
	return nil
}

// move keeps an event about memory.
func (k *kineto) move(e *kinetoEvent) error {
	var args struct {
		Bytes  *int64 `json:"Bytes"`
		Addr   uint64 `json:"Addr"`
		Type   *int32 `json:"Device Type"`
		Device int32  `json:"Device Id"`
		Total  int64  `json:"Total Allocated"`
	}
	if len(e.Args) == 0 {
		return fmt.Errorf("%s has no arguments", e.Name)
	}
	if err := jsonvalue.Explain(json.Unmarshal(e.Args, &args)); err != nil {
		return fmt.Errorf("%s: %w", e.Name, err)
	}
	if args.Bytes == nil || args.Type == nil {
		return fmt.Errorf("%s has no Bytes or no Device Type", e.Name)
	}
	ns, err := nanoseconds(e.Time)
	if err != nil {
		return fmt.Errorf("ts: %w", err)
	}
	host := *args.Type == 0
	if host {
		args.Device = 0
	}
	switch {
	case args.Device < 0 || args.Device > trace.MaxDevice:
		return fmt.Errorf("%s on device %d, expected 0 to %d", e.Name, args.Device, trace.MaxDevice)
	case *args.Bytes > trace.MaxSize || *args.Bytes < -trace.MaxSize:
		return fmt.Errorf("%s of %d bytes, expected at most %d", e.Name, *args.Bytes, int64(trace.MaxSize))
	}
	k.moves = append(k.moves, kinetoMove{ns, *args.Bytes, args.Addr, args.Total, args.Device, host, e.Name == kinetoOOM, k.thread(e)})
	return nil
}

// isKineto recognizes an object whose first keys are those of a profile.
func isKineto(head []byte) bool {
	head = bytes.TrimLeft(bytes.TrimPrefix(head, utf8BOM), " \t\r\n")
	return bytes.HasPrefix(head, []byte("{")) && !isExport(head) && (bytes.Contains(head, []byte(`"traceEvents"`)) || bytes.Contains(head, []byte(`"deviceProperties"`)))
}
