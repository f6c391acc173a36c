package synth

import (
	"fmt"

	"gm/internal/models/shapes"
)

// Layout is how GPUs share the work, beside the ranks that have batches of their own. All are 1, and Zero is 3, without.
type Layout struct {
	Zero    int64 // what ranks share (ZeRO, arXiv 1910.02054): 0 nothing, 1 optimizer states, 2 gradients too, 3 parameters too
	Tensor  int64 // GPUs that split matrices, and the tokens between them (sequence parallelism, arXiv 2205.05198)
	Context int64 // GPUs that split each sequence
	Experts int64 // GPUs, of those of ranks and Context, that split the experts
	Stages  int64 // of the pipeline
	Stage   int64 // that is traced
	Micro   int64 // batches that a step is split into, one after the other (1F1B)
}

// GPUs returns how many the job takes.
func (j *Job) GPUs() int64 { return j.Ranks * j.Tensor * j.Context * j.Stages }

// On returns the job as one of its GPUs does it. They are numbered by stages, in a stage by ranks, and in a rank by its parts.
func (j *Job) On(gpu int64) *Job {
	of, parts := *j, j.Tensor*j.Context
	of.Stage, of.Rank, of.part = gpu/parts/j.Ranks, gpu/parts%j.Ranks, gpu%parts
	return &of
}

// fully is the first level of ZeRO that is FSDP.
const fully = 2

// sharded reports whether FSDP shares the parameters.
func (j *Job) sharded() bool { return j.Ranks*j.Context > 1 && j.Zero >= fully }

// shards returns the ranks that FSDP shares parameters over, 1 without.
func (j *Job) shards() int64 {
	if j.sharded() {
		return j.Ranks * j.Context
	}
	return 1
}

// replicated reports whether each rank has all parameters, and gradients are summed up by DistributedDataParallel.
func (j *Job) replicated() bool { return j.Ranks*j.Context > 1 && j.Zero < fully }

// stored returns the bytes of a number of parameters, gradients and states.
func (j *Job) stored() int64 {
	if j.Strategy.Mixed {
		return single
	}
	return half
}

// check refuses layouts that cannot be, or that the operators of the model are not known for.
func (l *Layout) check(j *Job) error {
	m := &j.Model
	switch {
	case l.Stage >= l.Stages:
		return fmt.Errorf("stage %d of %d: stages count from 0", l.Stage, l.Stages)
	case m.Family != shapes.Llama && l.Tensor*l.Context*l.Stages > 1:
		return fmt.Errorf("tp, cp and pp are known for Llama, Mixtral and DeepSeek alone")
	case m.Heads%l.Tensor != 0 || m.FFN%l.Tensor != 0 || m.Experts.FFN%l.Tensor != 0:
		return fmt.Errorf("tp=%d does not divide %d heads and a feed-forward part of %d", l.Tensor, m.Heads, max(m.FFN, m.Experts.FFN))
	case m.Groups%l.Tensor != 0 && l.Tensor%m.Groups != 0:
		return fmt.Errorf("tp=%d does not divide %d groups", l.Tensor, m.Groups)
	case l.Experts > 1 && (m.Experts.Count == 0 || m.Experts.Count%l.Experts != 0 || j.Ranks*l.Context%l.Experts != 0):
		return fmt.Errorf("ep=%d does not divide %d experts and %d ranks", l.Experts, m.Experts.Count, j.Ranks*l.Context)
	case l.Experts > 1 && l.Zero < fully:
		return fmt.Errorf("ep is known with zero=2 and zero=3 alone")
	case m.Tied() && l.Stages > 1:
		return fmt.Errorf("the classifier is the table of tokens: it cannot be in another stage")
	case (m.Layers+ends)/l.Stages < ends:
		return fmt.Errorf("%d layers cannot be split into %d stages", m.Layers, l.Stages)
	case j.Lengths.longest()%(l.Tensor*l.Context) != 0 || j.Strategy.Vary && l.Tensor*l.Context > 1:
		return fmt.Errorf("tp=%d and cp=%d split sequences of one length, a multiple of both", l.Tensor, l.Context)
	}
	return nil
}

// ends is what counts as layers when stages are made: the embedding and the classifier.
const ends = 2

// layers returns the first layer of the stage, and the first of the next one.
func (j *Job) layers() (from, to int64) {
	if j.Stages == 1 {
		return 0, j.Model.Layers
	}
	all := j.Model.Layers + ends
	each, more := all/j.Stages, all%j.Stages
	start := func(stage int64) int64 { return stage*each + min(stage, more) }
	return max(0, start(j.Stage)-1), min(j.Model.Layers, start(j.Stage+1)-1)
}

// At returns the job of a GPU of a stage.
func (j *Job) At(stage int64) *Job {
	other := *j
	other.Stage = stage
	if j.Stages > 1 {
		other.spec = fmt.Sprintf("%s,stage=%d", j.spec, stage)
	}
	return &other
}

// LayersOfStage returns how many layers the stage has.
func (j *Job) LayersOfStage() int64 {
	from, to := j.layers()
	return to - from
}

// first and last report whether the stage has the embedding, and the classifier.
func (j *Job) first() bool { return j.Stage == 0 }
func (j *Job) last() bool  { return j.Stage == j.Stages-1 }

// local returns the part of a model that one GPU of those of tp has.
func (j *Job) local() *shapes.Transformer {
	m := j.Model
	if j.Tensor == 1 {
		return &m
	}
	m.Head = m.HeadSize()
	m.Heads /= j.Tensor
	m.Groups = max(1, m.Groups/j.Tensor)
	m.FFN /= j.Tensor
	m.Experts.FFN /= j.Tensor
	m.Vocabulary = divide(m.Vocabulary, j.Tensor)
	return &m
}

// passes is a pass of a microbatch in a step of a stage.
type pass struct {
	backward bool
	micro    int64
}

// schedule returns the passes of a step (1F1B, PipeDream-Flush): a stage is ahead by the stages behind it.
func (l *Layout) schedule() []pass {
	ahead := min(l.Stages-l.Stage-1, l.Micro)
	var all []pass
	for i := range l.Micro {
		all = append(all, pass{false, i})
		if i >= ahead {
			all = append(all, pass{true, i - ahead})
		}
	}
	for i := l.Micro - ahead; i < l.Micro; i++ {
		all = append(all, pass{true, i})
	}
	return all
}
