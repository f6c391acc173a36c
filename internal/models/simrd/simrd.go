// Package simrd reads the operator logs of DTR's simulator, simrd (Kirisame et al., Dynamic Tensor Rematerialization, ICLR 2021): the
// calls of a step of training, with the time of each and the bytes of each output.
//
// A log is text, a JSON object a line. CALL is an operator with its arguments and results; behind it stand MEMORY and ALIAS of each result.
// MUTATE is an operator that changes arguments: as in DTR it makes new tensors, which take the names of the old ones, and may take their
// places. COPY is another name for a tensor, COPY_FROM lets a name stand for another tensor, RELEASE ends a name. CONSTANT is a
// parameter or an input. Bytes are in MEMORY, nanoseconds in TIME.
package simrd

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"gm/internal/jsonvalue"
	"gm/internal/swap"
)

// maxLine is the longest line of a log that is read.
const maxLine = 1 << 20

// instruction is a line of a log.
type instruction struct {
	Instruction string   `json:"INSTRUCTION"`
	Name        string   `json:"NAME"` // of the operator, or the tensor
	Args        []string `json:"ARGS"`
	Result      []string `json:"RESULT"`
	Mutate      []int    `json:"MUTATE"` // arguments
	Time        string   `json:"TIME"`
	Memory      string   `json:"MEMORY"`
	Alias       string   `json:"ALIAS"` // the argument whose storage a result is, -1 for none
	Src         string   `json:"SRC"`
	Dst         string   `json:"DST"`
	Annotation  string   `json:"ANNOTATION"`
}

// Read reads a log as a complete graph of one step. Constants are in Base of each operator: they are there throughout. What still has a
// name at the end is used by a last operator of no time. The name is that of the graph.
func Read(r io.Reader, name string) (*swap.Graph, error) {
	l := &log{names: map[string]ref{}, graph: &swap.Graph{Name: name, Device: "as logged by DTR", Complete: true}}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for line := 1; lines.Scan(); line++ {
		var in instruction
		err := jsonvalue.Explain(json.Unmarshal(lines.Bytes(), &in))
		if err == nil {
			err = l.add(&in)
		}
		if err != nil {
			return nil, fmt.Errorf("log %s: line %d: %w", name, line, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("log %s: %w", name, err)
	}
	l.end()
	if err := l.graph.Validate(); err != nil {
		return nil, fmt.Errorf("log %s: %w", name, err)
	}
	return l.graph, nil
}

// log is a log while it is read.
type log struct {
	graph   *swap.Graph
	names   map[string]ref
	holders []int32 // of each tensor, the names that it has
	phase   swap.Phase
	base    int64    // bytes of the constants
	latest  []string // results of the last operator, which MEMORY and ALIAS are about
	args    []ref    // its arguments
}

// ref is what a name stands for.
type ref struct {
	tensor int32 // -1 for a constant
	view   int32 // the state that stands for the view that it is, -1 for none
	bytes  int64 // until ALIAS says that it is a tensor of its own
}

const none = -1

func (l *log) add(in *instruction) error {
	switch in.Instruction {
	case "CONSTANT":
		l.names[in.Name] = ref{none, none, 0}
		l.latest = nil
	case "CALL":
		return l.call(in)
	case "MUTATE":
		return l.mutate(in)
	case "MEMORY":
		return l.memory(in)
	case "ALIAS":
		return l.alias(in)
	case "COPY":
		return l.copy(in.Dst, in.Src)
	case "COPY_FROM":
		l.release(in.Dst)
		return l.copy(in.Dst, in.Src)
	case "RELEASE":
		if _, ok := l.names[in.Name]; !ok {
			return fmt.Errorf("release of %q, which is unknown", in.Name)
		}
		l.release(in.Name)
	case "ANNOTATE":
		if in.Annotation == "BACKWARD" {
			l.phase = swap.Backward
		}
	default:
		return fmt.Errorf("unknown instruction %q", in.Instruction)
	}
	return nil
}

// operate adds an operator that reads the arguments.
func (l *log) operate(in *instruction) error {
	took, err := strconv.ParseInt(in.Time, 10, 64)
	if err != nil {
		return fmt.Errorf("time of operator %s: %w", in.Name, err)
	}
	op := swap.Op{Name: in.Name, Type: typeOf(in.Name), Phase: l.phase, Layer: none, Duration: time.Duration(took)}
	at := int32(len(l.graph.Ops))
	l.args = l.args[:0]
	for _, arg := range in.Args {
		r, ok := l.names[arg]
		if !ok {
			return fmt.Errorf("operator %s reads %q, which is unknown", in.Name, arg)
		}
		l.args = append(l.args, r)
		if r.view >= 0 && !slices.Contains(op.Reads, r.view) {
			op.Reads = append(op.Reads, r.view)
		}
		if r.tensor >= 0 {
			l.use(r.tensor, at)
		}
	}
	slices.Sort(op.Reads)
	l.graph.Ops = append(l.graph.Ops, op)
	return nil
}

func (l *log) use(tensor, at int32) {
	t := &l.graph.Tensors[tensor]
	if n := len(t.Uses); n == 0 || t.Uses[n-1] != at {
		t.Uses = append(t.Uses, at)
	}
}

func (l *log) call(in *instruction) error {
	if err := l.operate(in); err != nil {
		return err
	}
	l.latest = in.Result
	for _, name := range in.Result {
		l.release(name)
		l.names[name] = ref{none, none, 0}
	}
	return nil
}

// mutate adds an operator that makes new tensors of some arguments.
func (l *log) mutate(in *instruction) error {
	if err := l.operate(in); err != nil {
		return err
	}
	l.latest = nil
	args := slices.Clone(l.args)
	for _, i := range in.Mutate {
		if i < 0 || i >= len(args) {
			return fmt.Errorf("operator %s changes argument %d of %d", in.Name, i, len(args))
		}
		if old := args[i].tensor; old >= 0 {
			made := l.make(in.Args[i], l.graph.Tensors[old].Bytes)
			l.graph.Tensors[made].Over = []int32{old}
		}
	}
	return nil
}

func (l *log) memory(in *instruction) error {
	bytes, err := strconv.ParseInt(in.Memory, 10, 64)
	r, ok := l.names[in.Name]
	switch {
	case err != nil:
		return fmt.Errorf("memory of %s: %w", in.Name, err)
	case !ok:
		return fmt.Errorf("memory of %q, which is unknown", in.Name)
	case l.latest == nil:
		l.base += bytes
	default:
		r.bytes = bytes
		l.names[in.Name] = r
	}
	return nil
}

// alias says whether a result is a tensor of its own or a view of an argument.
func (l *log) alias(in *instruction) error {
	of, err := strconv.Atoi(in.Alias)
	r, ok := l.names[in.Name]
	switch {
	case err != nil || of >= len(l.args):
		return fmt.Errorf("alias of %s: %q of %d arguments", in.Name, in.Alias, len(l.args))
	case !ok || !slices.Contains(l.latest, in.Name):
		return fmt.Errorf("alias of %q, which is no result of the last operator", in.Name)
	case of < 0:
		l.make(in.Name, r.bytes)
		return nil
	}
	op := &l.graph.Ops[len(l.graph.Ops)-1]
	view := int32(len(l.graph.States))
	l.graph.States = append(l.graph.States, "view "+in.Name)
	op.Changes = append(op.Changes, view)
	l.names[in.Name] = ref{l.args[of].tensor, view, 0}
	l.hold(l.args[of].tensor, 1)
	return nil
}

// make gives a name to a new tensor, which the last operator writes and can write again.
func (l *log) make(name string, bytes int64) int32 {
	made, id := int32(len(l.graph.Ops)-1), int32(len(l.graph.Tensors))
	t := swap.Tensor{Name: name, Bytes: max(bytes, 1), Made: made, Layer: none, Recompute: max(l.graph.Ops[made].Duration, 1)}
	for _, arg := range l.args {
		if arg.tensor >= 0 && !slices.Contains(t.From, arg.tensor) {
			t.From = append(t.From, arg.tensor)
		}
	}
	l.graph.Tensors = append(l.graph.Tensors, t)
	l.holders = append(l.holders, 0)
	l.release(name)
	l.names[name] = ref{id, none, 0}
	l.hold(id, 1)
	return id
}

func (l *log) copy(dst, src string) error {
	r, ok := l.names[src]
	if !ok {
		return fmt.Errorf("copy of %q, which is unknown", src)
	}
	l.names[dst] = r
	l.hold(r.tensor, 1)
	return nil
}

func (l *log) release(name string) {
	if r, ok := l.names[name]; ok {
		l.hold(r.tensor, -1)
		delete(l.names, name)
	}
}

func (l *log) hold(tensor, more int32) {
	if tensor >= 0 {
		l.holders[tensor] += more
	}
}

// end adds the operator that uses what is left, and uses of what nobody reads.
func (l *log) end() {
	at := int32(len(l.graph.Ops))
	l.graph.Ops = append(l.graph.Ops, swap.Op{Name: "end", Phase: l.phase, Layer: none})
	for i := range l.graph.Tensors {
		t := &l.graph.Tensors[i]
		if l.holders[i] > 0 {
			l.use(int32(i), at)
		}
		if len(t.Uses) == 0 {
			t.Uses = []int32{t.Made}
		}
	}
	for i := range l.graph.Ops {
		l.graph.Ops[i].Base = l.base
	}
}

// typeOf returns the type of an operator of PyTorch.
func typeOf(name string) swap.OpType {
	for _, known := range []struct {
		part string
		typ  swap.OpType
	}{
		{"conv", swap.Conv}, {"pool", swap.Pool}, {"norm", swap.Norm}, {"mm", swap.Linear}, {"softmax", swap.Softmax}, {"drop", swap.Dropout},
		{"relu", swap.Activation}, {"threshold", swap.Activation}, {"sigmoid", swap.Activation}, {"tanh", swap.Activation}, {"cat", swap.Join},
	} {
		if strings.Contains(name, known.part) {
			return known.typ
		}
	}
	return swap.Other
}
