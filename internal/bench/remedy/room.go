package remedy

import (
	"fmt"

	"gm/internal/bench/replay"
	"gm/internal/blocks"
	"gm/internal/cuda/sim"
	"gm/internal/torch/allocconf"
	"gm/internal/trace/failure"
)

// Room is the memory that PyTorch's allocator may have.
type Room struct {
	Bytes   int64 // 0 for sim.Endless
	Counted bool  // by a limit of the process, which counts whole segments, also expandable ones; otherwise by the device
}

// RoomOf returns the room that there was, at least, when a request failed.
func RoomOf(f *failure.Failure) Room { return Room{f.Room, counted(f)} }

func counted(f *failure.Failure) bool {
	return f.Limit == failure.Fraction || f.Limit == failure.ProcessLimit
}

// Torch makes PyTorch's allocator in the room. A counted room is half of a device of twice its size.
func (r Room) Torch(conf allocconf.Conf, costs sim.CostTable) (*sim.Device, *blocks.Torch, error) {
	bytes := r.Bytes
	if r.Counted {
		bytes *= 2
		conf.MemoryFraction = 0.5
	}
	dev := sim.New(bytes, costs)
	t, err := blocks.NewTorch(dev, conf)
	if err != nil {
		return nil, nil, fmt.Errorf("setting %s: %w", conf, err)
	}
	return dev, t, nil
}

// UpTo returns the program up to the request that failed, with it as the last, and with the settings that it was recorded with. The limit is
// left out of these: the room stands for it.
func UpTo(p *replay.Program, f *failure.Failure) (*replay.Program, error) {
	for _, r := range p.Refusals {
		if r.Row == f.Row {
			conf, _ := allocconf.Recorded(p.AllocConf)
			conf.MemoryFraction = 1
			q := p.Through(r)
			q.AllocConf = conf.String()
			return q, nil
		}
	}
	return nil, fmt.Errorf("%s: row %d is no request that failed", p.Name, f.Row)
}
