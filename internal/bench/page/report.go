// Package page writes a comparison of allocators as one HTML page that needs no other file: tables, memory over time, and a map of
// addresses.
package page

import (
	"context"
	"fmt"

	"gm/formats/column"
	"gm/internal/bench"
	"gm/internal/bench/replay"
	"gm/internal/bench/why"
	"gm/internal/blocks"
	tensors "gm/internal/trace/page"
)

// Report is what a page shows.
type Report struct {
	Title    string
	Version  string // of the program that writes it
	Capacity int64  // bytes of the simulated GPU, 0 if it has no limit
	Sections []*Section
}

// Section is one program with the result of each allocator.
type Section struct {
	Name     string
	Requests int
	Duration int64 // nanoseconds
	Rows     []bench.Row
	Accounts []*why.Account     // of the allocators that have one
	Top      Top                // of a plan, which has no tensors to show
	Tensors  *tensors.Recording // nil for a plan

	beginNS int64   // of the first step
	times   []int64 // nanoseconds since the beginning, at which the buckets of the series start
	stride  int     // steps in a bucket
	series  []*series
	limit   int64   // bytes of the GPU: the simulated one or, if that has no limit, the traced one; 0 if unknown
	failed  []int64 // nanoseconds since the beginning, at which requests failed while the trace was recorded
	places  *raster // nil if there is no map
	mapped  string  // the allocator that the map shows

	recording *tensors.Recording // of the whole file
}

// values is the total of numbers in the curves of a page, about 1 MB when packed.
const values = 1 << 23

// leastBuckets is the least number of buckets in a curve, if there are as many steps.
const leastBuckets = 512

// Measure replays programs through allocators on a GPU and returns a section for each. mapped is the index in specs of the allocator whose
// addresses are mapped; below 0 there is no map. It calls done after each replay, from any goroutine.
func Measure(ctx context.Context, programs []*replay.Program, specs []bench.Spec, mapped int, gpu bench.GPU, done func()) ([]*Section, error) {
	programs, err := prepare(ctx, programs, specs)
	if err != nil {
		return nil, err
	}
	limit := max(values/(2*len(programs)*len(specs)), leastBuckets)
	var sections []*Section
	trackers := make([]*tracker, len(programs))
	for i, p := range programs {
		sections = append(sections, newSection(p, len(specs), limit))
		if sections[i].limit = p.Capacity; gpu.Capacity > 0 {
			sections[i].limit = gpu.Capacity
		}
		if mapped >= 0 {
			trackers[i] = newTracker(p)
			sections[i].mapped = specs[mapped].Text
		}
	}
	rows, err := bench.CompareWatched(ctx, programs, specs, gpu, func(program, spec int, a blocks.Allocator) replay.Watch {
		s := sections[program].newSeries(spec, a)
		if spec != mapped {
			return s.watch
		}
		return trackers[program].watch(a, s.watch)
	}, done)
	if err != nil {
		return nil, err
	}
	for i, s := range sections {
		s.Rows = rows[i*len(specs) : (i+1)*len(specs)]
		if trackers[i] != nil {
			s.places = trackers[i].raster()
		}
		if err := s.readTensors(programs, sections, i); err != nil {
			return nil, err
		}
		if s.Accounts, err = accounts(ctx, programs[i], specs, gpu); err != nil {
			return nil, err
		}
	}
	return sections, nil
}

// readTensors reads the tensors of a program, or who holds the memory of a plan. The recording of a file is read once for all its programs.
func (s *Section) readTensors(programs []*replay.Program, sections []*Section, i int) error {
	p := programs[i]
	if i > 0 && p.SameFile(programs[i-1]) {
		s.recording = sections[i-1].recording
	}
	if s.recording == nil {
		_, err := p.Reread(func(source *column.Source) (err error) {
			s.recording, err = tensors.ReadSource(source)
			return err
		})
		if err != nil {
			return fmt.Errorf("read tensors: %w", err)
		}
	}
	if s.recording != nil {
		s.Tensors = s.recording.Of(p.Device)
	}
	if s.Tensors != nil {
		return nil
	}
	var err error
	s.Top, err = readTop(p)
	return err
}

// prepare solves the plans that are needed, once each.
func prepare(ctx context.Context, programs []*replay.Program, specs []bench.Spec) ([]*replay.Program, error) {
	prepared := make([]*replay.Program, len(programs))
	for i, p := range programs {
		prepared[i] = p
		for _, spec := range specs {
			var err error
			if prepared[i], err = spec.Prepare(ctx, prepared[i]); err != nil {
				return nil, err
			}
		}
	}
	return prepared, nil
}

// accounts breaks down what each allocator loses, except for bounds, which lose only what they round up.
func accounts(ctx context.Context, p *replay.Program, specs []bench.Spec, gpu bench.GPU) ([]*why.Account, error) {
	var lossy []bench.Spec
	for _, spec := range specs {
		if !spec.Bound {
			lossy = append(lossy, spec)
		}
	}
	return why.ExplainAll(ctx, p, lossy, gpu, func() {})
}
