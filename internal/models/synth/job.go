package synth

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"gm/formats/trace"
	"gm/internal/cuda/cards"
	"gm/internal/models/shapes"
)

// Job is a training run: bfloat16, scaled_dot_product_attention, AdamW.
type Job struct {
	Model    shapes.Transformer
	Strategy Strategy
	Device   cards.Device
	Batch    int64 // sequences in a step, on each rank
	Lengths  Lengths
	Adapters int64 // the rank of LoRA's matrices
	Ranks    int64 // that FSDP shares the model among; 1 without
	Rank     int64 // whose trace it is
	Layout
	part int64 // the GPU, of those that split a rank's tensors and sequences: they all do the same
	spec string
}

// Strategy is what saves memory.
type Strategy struct {
	LoRA      bool // L: the model is frozen but for adapters
	Recompute bool // R: a layer keeps its input and is run again in the backward pass
	Vary      bool // V: each step has a length of its own
	Mixed     bool // M: parameters, gradients and states are in single precision; operators run on copies in half precision
	Offload   bool // O: gradients, and the optimizer with its states, are on the host; under FSDP parameters too
}

// ParseStrategy reads letters, such as LRV. N, or nothing, is none of them.
func ParseStrategy(text string) (Strategy, error) {
	var s Strategy
	if text == "N" {
		return s, nil
	}
	for _, letter := range text {
		set := map[rune]*bool{'L': &s.LoRA, 'R': &s.Recompute, 'V': &s.Vary, 'O': &s.Offload, 'M': &s.Mixed}[letter]
		if set == nil || *set {
			return s, fmt.Errorf("strategy %q: expected N, or letters of L, R, V, O and M, each once", text)
		}
		*set = true
	}
	return s, nil
}

// Lengths are the tokens of the sequences of each step.
type Lengths struct {
	listed      []int64 // in turn; or nil
	least, most int64   // else
}

// next returns the length of a step.
func (l *Lengths) next(r *rand.Rand, step int64) int64 {
	if l.listed != nil {
		return l.listed[step%int64(len(l.listed))]
	}
	return l.least + r.Int64N(l.most-l.least+1)
}

// Listed returns how many lengths steps take in turn, 0 if each is drawn.
func (l *Lengths) Listed() int64 { return int64(len(l.listed)) }

func (l *Lengths) longest() int64 {
	if l.listed != nil {
		return slices.Max(l.listed)
	}
	return l.most
}

// varied is the part of the longest sequence that the shortest has under V, unless it is given: 1 / varied.
const varied = 4

// headMultiple divides the size of a head, for cuDNN's attention.
const headMultiple = 8

// Bounds of what may be asked for.
const (
	mostTokens  = 1 << 24 // of a sequence
	mostBatch   = 1 << 16
	mostLayers  = 1 << 10
	mostWidth   = 1 << 17
	mostColumns = 1 << 20
	mostRanks   = 1 << 16
)

// Parameter is a number that a spec may give. Its default is in its text.
type Parameter struct {
	shapes.Parameter
	of func(j *Job) *int64
}

// Parameters lists them.
func Parameters() []Parameter {
	parameter := func(name, about string, least, most int64, of func(j *Job) *int64) Parameter {
		return Parameter{shapes.Parameter{Name: name, About: about, Least: least, Most: most}, of}
	}
	return []Parameter{
		parameter("batch", "sequences in a step, on each rank; 8 by default", 1, mostBatch, func(j *Job) *int64 { return &j.Batch }),
		parameter("layers", "layers", 1, mostLayers, func(j *Job) *int64 { return &j.Model.Layers }),
		parameter("hidden", "width of the model", 1, mostWidth, func(j *Job) *int64 { return &j.Model.Hidden }),
		parameter("ffn", "width of the feed-forward part; in the model's proportion to hidden", 1, mostColumns,
			func(j *Job) *int64 { return &j.Model.FFN }),
		parameter("heads", "heads", 1, mostWidth, func(j *Job) *int64 { return &j.Model.Heads }),
		parameter("vocab", "words", 1, mostColumns, func(j *Job) *int64 { return &j.Model.Vocabulary }),
		parameter("lora", "rank of LoRA's matrices; 16 by default", 1, mostWidth, func(j *Job) *int64 { return &j.Adapters }),
		parameter("ranks", "GPUs that FSDP shares the model among; 1, which is none, by default", 1, mostRanks,
			func(j *Job) *int64 { return &j.Ranks }),
		parameter("zero", "what those ranks share: 0 nothing, 1 optimizer states, 2 gradients too, 3 parameters too, the default", 0, 3,
			func(j *Job) *int64 { return &j.Zero }),
		parameter("tp", "GPUs that split each layer, and the tokens between products; 1 by default", 1, mostRanks, func(j *Job) *int64 { return &j.Tensor }),
		parameter("cp", "GPUs that split each sequence; 1 by default", 1, mostRanks, func(j *Job) *int64 { return &j.Context }),
		parameter("ep", "GPUs, of those of ranks and cp, that split the experts; 1 by default", 1, mostRanks, func(j *Job) *int64 { return &j.Experts }),
		parameter("pp", "stages of a pipeline that split the layers; 1 by default", 1, mostLayers, func(j *Job) *int64 { return &j.Stages }),
		parameter("stage", "which of them is traced; 0 by default", 0, mostLayers-1, func(j *Job) *int64 { return &j.Stage }),
		parameter("micro", "batches that a step is split into; as many as stages by default", 1, mostBatch, func(j *Job) *int64 { return &j.Micro }),
		parameter("rank", "which of them is traced; 0 by default", 0, mostRanks-1, func(j *Job) *int64 { return &j.Rank }),
	}
}

// Parse reads a job from a spec such as opt-13b,batch=16,seq=256..1024,ranks=4 and a strategy.
func Parse(spec string, s Strategy) (*Job, error) {
	fields := strings.Split(spec, ",")
	model, err := shapes.Lookup(fields[0])
	if err != nil {
		return nil, fmt.Errorf("model %q: %w", spec, err)
	}
	return New(model, fields[1:], s)
}

// New makes a job of a model and fields of a spec, such as batch=16.
func New(model shapes.Transformer, fields []string, s Strategy) (*Job, error) {
	spec := strings.Join(append([]string{model.Name}, fields...), ",")
	j := &Job{Model: model, Strategy: s, Batch: 8, Adapters: 16, Ranks: 1, Layout: Layout{Zero: 3, Tensor: 1, Context: 1, Experts: 1, Stages: 1}, spec: spec}
	if err := j.parse(fields); err != nil {
		return nil, fmt.Errorf("model %q: %w", spec, err)
	}
	return j, nil
}

func (j *Job) parse(fields []string) error {
	before := j.Model
	device, sequence := "h200", "1Ki"
	given, err := shapes.EachGiven(fields, func(name, value string) error {
		switch name {
		case "device":
			device = value
		case "seq":
			sequence = value
		default:
			return j.set(name, value)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if !slices.Contains(given, "ffn") {
		j.Model.FFN = before.FFN * j.Model.Hidden / before.Hidden
	}
	if !slices.Contains(given, "micro") {
		j.Micro = j.Stages
	}
	if before.Groups == before.Heads {
		j.Model.Groups = j.Model.Heads
	}
	if j.Device, err = cards.LookupDevice(device); err != nil {
		return err
	}
	if j.Lengths, err = parseLengths(sequence, &j.Strategy.Vary); err != nil {
		return fmt.Errorf("seq: %w", err)
	}
	return j.check()
}

func (j *Job) set(name, value string) error {
	names := []string{"device", "seq"}
	for _, p := range Parameters() {
		if p.Name == name {
			n, err := p.Parse(value)
			if err == nil {
				*p.of(j) = n
			}
			return err
		}
		names = append(names, p.Name)
	}
	return fmt.Errorf("unknown parameter %q, expected one of %s", name, strings.Join(names, ", "))
}

// parseLengths reads a length, a range A..B that each step draws from, or a list A/B/C that steps take in turn.
func parseLengths(text string, vary *bool) (Lengths, error) {
	var l Lengths
	var err error
	if low, high, found := strings.Cut(text, ".."); found {
		*vary = true
		if l.least, err = shapes.ParseWithin(low, 1, mostTokens); err == nil {
			l.most, err = shapes.ParseWithin(high, l.least, mostTokens)
		}
		return l, err
	}
	for _, word := range strings.Split(text, "/") {
		n, err := shapes.ParseWithin(word, 1, mostTokens)
		if err != nil {
			return l, err
		}
		l.listed = append(l.listed, n)
	}
	if len(l.listed) > 1 {
		*vary = true
	} else if *vary {
		l.least, l.most, l.listed = max(1, l.listed[0]/varied), l.listed[0], nil
	}
	return l, nil
}

// check refuses what cannot be, and makes the table of positions as long as the longest sequence.
func (j *Job) check() error {
	m := &j.Model
	if m.Positions > 0 {
		m.Positions = max(m.Positions, j.Lengths.longest())
	}
	switch {
	case m.Head == 0 && m.Hidden%m.Heads != 0:
		return fmt.Errorf("a hidden size of %d cannot be split among %d heads", m.Hidden, m.Heads)
	case m.HeadSize()%headMultiple != 0:
		return fmt.Errorf("heads of %d numbers: attention takes multiples of %d", m.HeadSize(), headMultiple)
	case m.Heads%m.Groups != 0:
		return fmt.Errorf("%d heads cannot be split among %d groups", m.Heads, m.Groups)
	case j.Rank >= j.Ranks:
		return fmt.Errorf("rank %d of %d: ranks count from 0", j.Rank, j.Ranks)
	}
	return j.Layout.check(j)
}

// peer returns the bytes a second at which this rank receives from the others.
func (j *Job) peer() float64 {
	if j.Ranks <= RanksOfHost && j.Device.Peer > 0 {
		return j.Device.Peer * j.Device.Reach.Peer
	}
	return wire
}

// meta returns what the trace says of itself.
func (j *Job) meta() trace.Meta {
	meta := trace.Meta{Source: "synthetic: " + j.spec + strings.TrimSuffix(" --strategy "+j.Strategy.String(), " --strategy N"), Alignment: 512}
	if n := j.GPUs(); n > 1 {
		meta.Rank = (j.Stage*j.Ranks+j.Rank)*j.Context*j.Tensor + j.part
		meta.LocalRank, meta.WorldSize = meta.Rank%RanksOfHost, n
	}
	return meta
}

// String returns the letters.
func (s Strategy) String() string {
	text := ""
	for _, l := range []struct {
		set    bool
		letter string
	}{{s.LoRA, "L"}, {s.Recompute, "R"}, {s.Vary, "V"}, {s.Offload, "O"}, {s.Mixed, "M"}} {
		if l.set {
			text += l.letter
		}
	}
	if text == "" {
		return "N"
	}
	return text
}
