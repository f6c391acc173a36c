package main

import (
	"errors"
	"fmt"

	"gm/formats/column"
	"gm/formats/trace"
	"gm/internal/bench/remedy"
	"gm/internal/bench/replay"
	"gm/internal/bench/tuning"
	"gm/internal/trace/failure"
	"gm/internal/trace/overview"
	"gm/internal/units"
)

// failures are the requests of programs that failed while these were recorded, the last of each program.
type failures map[*replay.Program]*failure.Failure

// read loads a trace or a plan from a source, which it takes over, and notes what failed.
func (fs failures) read(source *column.Source) ([]*replay.Program, error) {
	found, err := failuresOf(source)
	if err != nil {
		return nil, errors.Join(err, source.Close())
	}
	programs, err := replay.Read(source)
	for _, p := range programs {
		for _, f := range found {
			if f.Device == p.Device && f.By == "" {
				fs[p] = f
			}
		}
	}
	return programs, err
}

// failuresOf returns the requests that failed in a trace; none for a plan.
func failuresOf(source *column.Source) ([]*failure.Failure, error) {
	kind, err := column.Kind(source, source.Size())
	if err != nil || kind == "plan" {
		return nil, nil // reading the requests says what is wrong
	}
	o, err := trace.ReadSource(source, overview.Read)
	if err != nil {
		return nil, err
	}
	return trace.ReadSource(source, func(r *trace.Reader) ([]*failure.Failure, error) { return failure.Read(r, o) })
}

// job returns what to replay for a program, and in words why that is not all that was recorded. A request that failed is the last of the
// replay, as in gmtrace why-oom, unless most of the recording comes after it. The room that it found is the job's if no capacity was given.
func (fs failures) job(p *replay.Program, capacity int64) (tuning.Job, string, error) {
	all := tuning.Job{Program: p, Room: remedy.Room{Bytes: capacity}}
	f := fs[p]
	if f == nil {
		return all, "", nil
	}
	said := fmt.Sprintf("%s: a request of %s failed at row %d", p.Name, units.Bytes(f.Size), f.Row)
	cut, err := remedy.UpTo(p, f)
	switch {
	case err != nil:
		return all, "", err
	case cut.Steps() < p.Steps()/2:
		return all, said + ", and most of the recording comes after it: all is replayed, without that request", nil
	case capacity > 0:
		return tuning.Job{Program: cut, Room: all.Room, Failed: true}, said + ": the replay ends with it", nil
	case f.Cause == failure.Unknown:
		return all, said + ", in memory of an unknown size (--capacity says it): the replay leaves it out", nil
	}
	return tuning.Job{Program: cut, Room: remedy.RoomOf(f), Failed: true}, said + ": the replay ends with it, in the " + room(f), nil
}

// room says what PyTorch could have when a request failed.
func room(f *failure.Failure) string {
	if f.Most > f.Room {
		return fmt.Sprintf("%s that a limit leaves at least", units.Bytes(f.Room))
	}
	return fmt.Sprintf("%s that PyTorch had or could have taken", units.Bytes(f.Room))
}
