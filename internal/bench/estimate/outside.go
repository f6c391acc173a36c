package estimate

import "gm/internal/models/synth"

// Outside is what a process takes of a GPU outside of PyTorch's allocator, in bytes.
type Outside struct {
	Process int64 `json:"process_bytes"`      // CUDA's context, kernels and workspaces of libraries
	Code    int64 `json:"nccl_code_bytes"`    // kernels of NCCL
	Buffers int64 `json:"nccl_buffers_bytes"` // of NCCL's communicators
}

// Sum returns all of it.
func (o Outside) Sum() int64 { return o.Process + o.Code + o.Buffers }

// What is taken as it was recorded on H200s with PyTorch 2.11 (testdata/parallel), in bytes. Nothing else in this file is fitted.
const (
	process = 676 << 20 // context 518 MiB, workspaces of cuBLAS 64, code of cudart 2, and 92 that NVML saw and no call explains
	code    = 438 << 20 // with send and receive; 376 MiB with all-gather and reduce-scatter alone
	// NCCL's channels: as many as it chose for rings between two GPUs with NVLink. For send and receive it takes the next power of two
	// (src/graph/paths.cc).
	ringChannels = 24
	pairChannels = 32
)

// What NCCL allocates, by its source.
const (
	unit = 2 << 20 // the driver hands memory out by it
	// buffers is what a GPU has for each channel on which it receives: 4 MiB (NCCL_BUFFSIZE), 512 threads x 8 lines x 8 steps x 16 bytes, and
	// 640 threads x 120 numbers x 8 steps x 8 bytes, for the protocols Simple, LL and LL128 (src/init.cc). These are 9.2 MiB.
	buffers = 10 << 20
	// channel is that, with the counters of one on which it sends (src/transport/p2p.cc).
	channel = buffers + unit
	// communicator is three tables for each channel (src/channel.cc), and two for all.
	communicator = (3*pairChannels + 2) * unit
)

// hostGPUs is how many GPUs a host has, of which each sends to each other in an all-to-all. Buffers for other hosts are not modelled.
const hostGPUs = 8

// group is a communicator of NCCL, as one of its GPUs has it.
type group struct {
	gpus  int64
	ring  bool  // for all-gather, reduce-scatter and all-reduce
	pairs int64 // GPUs that it sends to and receives from
}

func (g *group) bytes() int64 {
	n := communicator + g.pairs*pairChannels*channel
	if g.ring {
		n += ringChannels * channel
	}
	return n
}

// groupsOf returns the communicators of a GPU of a stage: those of tensor, data, context, expert and pipeline parallelism, and the one of all GPUs.
// Those of the same GPUs are one, but for that of experts, for which PyTorch's engines make a mesh of its own.
func groupsOf(job *synth.Job) []group {
	data := job.Ranks * job.Context
	all := []group{{gpus: job.Tensor, ring: true}, {gpus: data, ring: true}}
	// Parts of a sequence go round: from one neighbour, to the other.
	if job.Ranks == 1 && job.Context > 1 {
		all[1].pairs = 1
	} else {
		all = append(all, group{gpus: job.Context, pairs: 1})
	}
	if job.Experts > 1 {
		all = append(all, group{gpus: job.Experts, pairs: min(job.Experts, hostGPUs) - 1}, group{gpus: data / job.Experts, ring: true})
	}
	neighbours := int64(2)
	if job.Stage == 0 || job.Stage == job.Stages-1 {
		neighbours = 1
	}
	all = append(all, group{gpus: job.Stages, pairs: neighbours})
	var several []group
	whole := false
	for _, g := range all {
		if g.gpus > 1 {
			several = append(several, g)
			whole = whole || g.gpus == job.GPUs()
		}
	}
	if len(several) > 0 && !whole {
		several = append(several, group{gpus: job.GPUs(), ring: true})
	}
	return several
}

// outsideOf estimates what a GPU of a stage has outside of PyTorch's allocator.
func outsideOf(job *synth.Job) Outside {
	o := Outside{Process: process}
	for _, g := range groupsOf(job) {
		o.Code = code
		o.Buffers += g.bytes()
	}
	return o
}
