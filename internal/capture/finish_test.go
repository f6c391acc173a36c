package capture

import (
	"fmt"
	"slices"
	"testing"

	"gm/formats/trace"
	"gm/internal/capture/ring"
	"gm/internal/torch/snapshot"
)

// TestProgram names what a process runs, and quotes its command line.
func TestProgram(t *testing.T) {
	for _, c := range []struct {
		words            []string
		program, command string
	}{
		{nil, "process 1", ""},
		{[]string{"/bin/train"}, "train", "/bin/train"},
		{[]string{"python", "-u", "/x/a.py", "b.py"}, "a.py", "python -u /x/a.py b.py"},
		{[]string{"/x/a.py", "c"}, "a.py", "/x/a.py c"},
		{[]string{"a", "", "b c", "d'e", "$f"}, "a", `a '' 'b c' 'd'\''e' '$f'`},
	} {
		p := quiet(t.TempDir())
		if p.header = (&ring.Header{Command: c.words}); p.program() != c.program || p.command() != c.command {
			t.Errorf("%q: %q, %q", c.words, p.program(), p.command())
		}
	}
	if p := quiet(t.TempDir()); p.program() != "process 1" || p.command() != "" {
		t.Errorf("no header: %q, %q", p.program(), p.command())
	}
}

// outputOf returns the trace to write of a process, and what it warns of.
func outputOf(p *process, o Options) (out *Output, warned *[]string) {
	warned = new([]string)
	o.Warn = func(format string, args ...any) { *warned = append(*warned, fmt.Sprintf(format, args...)) }
	p.warn = func(string, ...any) {}
	return &Output{PID: p.pid, session: &Session{options: o}, process: p}, warned
}

func (p *process) lacking() []string {
	var all []string
	for _, l := range p.lacks {
		all = append(all, l.text)
	}
	return all
}

const (
	noHook    = "PyTorch's tensors are not recorded, since Python did not load the hook: is it run with -E, -I or -S?"
	noNews    = "PyTorch's tensors are not recorded: it was killed, or ended by _exit, before there was news of them"
	lostFirst = "PyTorch's first events are lost, there were so many at once: tensors older than the rest are tagged preexisting"
	noLibrary = "it did not load the preload library: only PyTorch's tensors are recorded"
	noMarks   = "process 1: m:f never returned: no iterations are marked"
	noStep    = "process 1: it ended before the first iteration to record"
)

// TestWarn says what a trace lacks, and what it is warned of.
func TestWarn(t *testing.T) {
	whole := window{0, endOfTime}
	on := greeting{Torch: "2", History: "on"}
	pytorch := library{from: 1, to: 2, path: "/x/libtorch.so"}
	for name, c := range map[string]struct {
		options  Options
		window   window
		marked   bool
		greeting greeting
		library  library
		history  bool
		failed   bool
		headless bool
		headed   bool
		lacks    []string
		warnings []string
	}{
		"nothing of PyTorch":      {window: whole, headed: true},
		"all":                     {window: whole, headed: true, greeting: on, history: true},
		"no hook":                 {window: whole, headed: true, library: pytorch, lacks: []string{noHook}},
		"another library":         {window: whole, headed: true, library: library{from: 1, to: 2, path: "/x/libnccl.so"}},
		"a hook":                  {window: whole, headed: true, library: pytorch, greeting: on, history: true},
		"off":                     {window: whole, headed: true, greeting: greeting{History: "off"}, lacks: []string{"PyTorch's tensors are not recorded: off"}},
		"no dump":                 {window: whole, headed: true, greeting: on, lacks: []string{noNews}},
		"no dump, failed":         {window: whole, headed: true, greeting: on, failed: true},
		"no dump, no need":        {window: whole, headed: true, greeting: on, options: Options{OnlyOOM: true}},
		"no dump, no step":        {window: window{endOfTime, endOfTime}, headed: true, greeting: on, warnings: []string{noStep}},
		"a dump, no greeting":     {window: whole, headed: true, history: true},
		"headless":                {window: whole, headed: true, history: true, headless: true, lacks: []string{lostFirst}},
		"headless, of the last":   {window: whole, headed: true, history: true, headless: true, options: Options{OnlyOOM: true}},
		"no preload library":      {window: whole, history: true, lacks: []string{noLibrary}},
		"no marks":                {window: whole, headed: true, greeting: on, history: true, options: Options{Marks: "m:f"}, warnings: []string{noMarks}},
		"no marks without Python": {window: whole, headed: true, options: Options{Marks: "m:f"}},
		"marks":                   {window: whole, headed: true, greeting: on, history: true, marked: true, options: Options{Marks: "m:f"}},
		"no marks wanted":         {window: whole, headed: true, greeting: on, history: true},
	} {
		p := quiet(t.TempDir())
		p.greeting, p.headless = c.greeting, c.headless
		p.interpreter.libraries.add(c.library)
		if c.history {
			p.history = new(snapshot.Join)
		}
		if c.failed {
			p.failed = fmt.Errorf("failed")
		}
		if c.headed {
			p.header = new(ring.Header)
		}
		o, warned := outputOf(p, c.options)
		if o.warn(c.window, c.marked); !slices.Equal(p.lacking(), c.lacks) || !slices.Equal(*warned, c.warnings) {
			t.Errorf("%s: lacks %q, warnings %q", name, p.lacking(), *warned)
		}
	}
}

// TestWarnOfRing tells of each counter of a ring that is not 0.
func TestWarnOfRing(t *testing.T) {
	for _, c := range []struct {
		counters ring.Counters
		lack     string
		warning  string
	}{
		{ring.Counters{WaitedNS: 5}, "", ""},
		{ring.Counters{Lost: 1}, "1 calls were not recorded, since gmtrace was held up for too long, or had no room", ""},
		{ring.Counters{Torn: 1}, "its threads ended in the midst of 1 calls, which are not recorded", ""},
		{ring.Counters{Damaged: 1}, "1 records are left out: something wrote over them", ""},
		{ring.Counters{OddTimes: 1}, "1 records have the time of the one before, since their own cannot be", ""},
		{ring.Counters{Waits: 1, WaitedNS: 5}, "", "process 1: it waited 1 times for gmtrace, 5ns in all"},
	} {
		p := quiet(t.TempDir())
		o, warned := outputOf(p, Options{})
		o.warnOfRing(c.counters)
		if got := fmt.Sprintf("%s%s", p.lacking(), *warned); got != fmt.Sprintf("%s%s", texts1(c.lack), texts1(c.warning)) {
			t.Errorf("%+v: %s", c.counters, got)
		}
	}
}

// texts1 is a list of one text; of none if it is empty.
func texts1(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}

// TestCheckOrder tells of what was found out while the rows were written, if there is any of it.
func TestCheckOrder(t *testing.T) {
	for name, c := range map[string]struct {
		short          bool
		left, late     int
		lacks, warning int
	}{
		"nothing": {}, "short": {short: true, lacks: 1}, "left out": {left: 1, lacks: 1}, "late": {late: 1, warning: 1},
	} {
		p := quiet(t.TempDir())
		o, warned := outputOf(p, Options{})
		o.checkOrder(&merger{late: int64(c.late)}, &replay{short: c.short, interpreter: &interpreter{left: c.left}})
		if len(p.lacks) != c.lacks || len(*warned) != c.warning {
			t.Errorf("%s: lacks %q, warnings %q", name, p.lacking(), *warned)
		}
	}
}

// TestWithLacks puts what a recording lacks among its marks, by time.
func TestWithLacks(t *testing.T) {
	p := &process{notes: []mark{{20, "clock"}}, lacks: []mark{{5, "b"}, {30, "a"}}}
	o := &Output{process: p}
	want := []mark{{5, trace.IncompleteTag("b")}, {10, "step"}, {20, "clock"}, {30, trace.IncompleteTag("a")}, {40, "step"}}
	if got := o.withLacks([]mark{{10, "step"}, {40, "step"}}); !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

// TestDescribe has what is unknown of ranks and devices left out.
func TestDescribe(t *testing.T) {
	gpus := map[int32]device{-1: {name: "none", total: 9}, 0: {name: "a", total: 5}, 2: {name: "c", total: 7}}
	for _, c := range []struct {
		id   identity
		want [3]int64
	}{
		{identity{rank: -1, localRank: 2, worldSize: 3}, [3]int64{}}, {identity{rank: 0, localRank: 2, worldSize: 3}, [3]int64{0, 2, 3}},
		{identity{rank: 1, localRank: -1, worldSize: -1}, [3]int64{1, 0, 0}},
	} {
		var meta trace.Meta
		o := &Output{id: c.id, process: &process{pid: 7, lacks: []mark{{1, "a"}, {2, "b"}}}}
		o.describe(&meta, &interpreter{devices: gpus})
		if got := [3]int64{meta.Rank, meta.LocalRank, meta.WorldSize}; got != c.want || meta.Incomplete != "a; b" {
			t.Errorf("%+v: %v, incomplete %q", c.id, got, meta.Incomplete)
		}
		if !slices.Equal(meta.Devices, []string{"a", "", "c"}) || meta.Capacity != 7 {
			t.Errorf("devices %q, %d bytes", meta.Devices, meta.Capacity)
		}
	}
}

// TestRecoveredOutputs writes only the traces of processes with something to tell.
func TestRecoveredOutputs(t *testing.T) {
	for name, c := range map[string]struct {
		header, history, oom bool
		always, only         bool // there is a trace; also with OnlyOOM
	}{
		"nothing": {}, "no CUDA, refused": {oom: true}, "CUDA": {header: true, always: true}, "refused": {header: true, oom: true, always: true, only: true},
		"PyTorch": {history: true, always: true, only: true}, "both": {header: true, history: true, always: true, only: true},
	} {
		p := quiet(t.TempDir())
		if p.interpreter.oom = c.oom; c.header {
			p.header = new(ring.Header)
		}
		if c.history {
			p.history = new(snapshot.Join)
		}
		for only, want := range map[bool]bool{false: c.always, true: c.only} {
			s := &Session{options: Options{OnlyOOM: only}, processes: []*process{p}}
			if outputs, err := s.Recovered("%p"); err != nil || (len(outputs) == 1) != want {
				t.Errorf("%s, only of refused ones %v: %d traces, %v", name, only, len(outputs), err)
			}
		}
	}
}
