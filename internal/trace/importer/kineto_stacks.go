package importer

import (
	"cmp"
	"encoding/binary"
	"regexp"
	"slices"
	"strings"
)

// kinetoThread is a thread of the profiled process: the operators and Python functions that ran on it.
type kinetoThread struct {
	number int32
	spans  []kinetoSpan
	next   int   // the first span that has not begun
	open   []int // those that have begun, outermost first; some may have ended
}

// kinetoSpan is the time of an operator or a function, in ns.
type kinetoSpan struct {
	begin, end int64
	name       int32
	forward    int32 // number of the frames of the forward pass that it belongs to; 0 if none are known
}

// kinetoNames numbers the names of operators and functions, as frames of stacks.
type kinetoNames struct {
	frames   []string
	codes    map[string]int32
	forwards [][]byte // codes of the frames of operators of the forward pass, by number
}

// frame returns the code of the frame of an operator or a function.
func (k *kineto) frame(name string) int32 {
	n := &k.names
	name = name[:min(len(name), maxFrame)]
	code, known := n.codes[name]
	if !known {
		if n.codes == nil {
			n.codes = map[string]int32{}
		}
		code = int32(len(n.frames))
		n.codes[name] = code
		n.frames = append(n.frames, frameOf(name))
		k.text += 2 * (len(name) + textCost)
	}
	return code
}

// A function in Python is "train.py(12): step"; an operator is "aten::mm".
var pythonFunction = regexp.MustCompile(`^(.+)\((\d+)\): (.+)$`)

// frameOf returns a frame as a folded stack has it: "step (train.py:12)".
func frameOf(name string) string {
	name = strings.NewReplacer(";", ",", "\n", " ", "\r", " ").Replace(name)
	return pythonFunction.ReplaceAllString(name, "$3 ($1:$2)")
}

const (
	maxFrame  = 1 << 10 // bytes of a name
	maxFrames = 1 << 8  // frames of a stack, the innermost ones
)

// thread returns the thread of an event.
func (k *kineto) thread(e *kinetoEvent) *kinetoThread {
	key := string(e.Process) + " " + string(e.Thread)
	t := k.threads[key]
	if t == nil {
		if k.threads == nil {
			k.threads = map[string]*kinetoThread{}
		}
		t = &kinetoThread{}
		if n, err := parseInt(string(e.Thread)); err == nil && n == int64(int32(n)) {
			t.number = int32(n)
		}
		k.threads[key] = t
		k.text += len(key) + 2*textCost
	}
	return t
}

// sortSpans puts the spans of all threads in order: those that begin first, and of these the longest.
func (k *kineto) sortSpans() {
	for _, t := range k.threads {
		slices.SortStableFunc(t.spans, func(a, b kinetoSpan) int {
			return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(b.end, a.end))
		})
	}
}

// at goes to a time, which must not be before that of the last call, and appends the codes of the frames that run then to key, outermost
// first. The frames of the forward pass that an operator belongs to replace what is around it.
func (t *kinetoThread) at(ns int64, key []byte, forwards [][]byte) []byte {
	for t.next < len(t.spans) && t.spans[t.next].begin <= ns {
		t.close(t.spans[t.next].begin)
		t.open = append(t.open, t.next)
		t.next++
	}
	t.close(ns)
	for _, i := range t.open[max(len(t.open)-maxFrames, 0):] {
		span := &t.spans[i]
		if span.end > ns {
			if int(span.forward) < len(forwards) && span.forward > 0 {
				key = append(key[:0], forwards[span.forward]...)
			}
			key = binary.LittleEndian.AppendUint32(key, uint32(span.name))
		}
	}
	return key[max(len(key)-4*maxFrames, 0):]
}

// close drops the innermost spans that have ended.
func (t *kinetoThread) close(ns int64) {
	for len(t.open) > 0 && t.spans[t.open[len(t.open)-1]].end <= ns {
		t.open = t.open[:len(t.open)-1]
	}
}

// stack returns the folded stack of a list of codes.
func (n *kinetoNames) stack(key []byte) string {
	frames := make([]string, 0, len(key)/4)
	for ; len(key) > 0; key = key[4:] {
		frames = append(frames, n.frames[binary.LittleEndian.Uint32(key)])
	}
	return strings.Join(frames, ";")
}
