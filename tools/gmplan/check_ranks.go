package main

import (
	"errors"
	"fmt"
	"runtime"
	"strings"

	"gm/formats/column"
	"gm/formats/plan"
	"gm/formats/trace"
	"gm/internal/cli"
	"gm/internal/plan/check"
	"gm/internal/trace/ranks"
	"gm/internal/units"
)

// ranks checks a plan against the traces of all ranks of a job.
func (cmd *checkCmd) ranks(c *cli.Context, source *column.Source) error {
	j, err := ranks.Open(cmd.Trace)
	if err != nil {
		return err
	}
	faults, reports := make([]error, len(j.Members)), make([]check.Report, len(j.Members))
	of := make([]int64, len(j.Members))
	progress := c.Progress("check ranks", int64(len(j.Members)))
	err = j.Each(c.Context(), runtime.GOMAXPROCS(0), func() { progress.Add(1) }, func(m *ranks.Member, s *column.Source) error {
		of[m.Index] = m.Rank
		reports[m.Index], faults[m.Index] = alike(source, s)
		return nil
	})
	progress.End()
	if err != nil {
		return err
	}
	var fits []int64
	reasons, misfits := []string{}, map[string][]int64{}
	for i, fault := range faults {
		if fault == nil {
			fits = append(fits, of[i])
			continue
		}
		if misfits[fault.Error()] == nil {
			reasons = append(reasons, fault.Error())
		}
		misfits[fault.Error()] = append(misfits[fault.Error()], of[i])
	}
	for i, fault := range faults {
		if fault == nil {
			r := reports[i]
			if _, err := fmt.Fprintf(c.Out, "valid for %s: %s in %s, peak %s, at least %s\n", ranks.Names(fits), units.Count(r.Tensors, "tensor"), units.Count(r.Arenas, "arena"),
				units.Bytes(r.Peak), units.Bytes(r.Load)); err != nil {
				return err
			}
			break
		}
	}
	var errs []error
	for _, reason := range reasons {
		errs = append(errs, fmt.Errorf("not for %s: %s", ranks.Names(misfits[reason]), strings.TrimSpace(reason)))
	}
	for _, problem := range j.Problems() {
		c.Warn("%s: %s", j.Folder, problem)
	}
	return errors.Join(append(errs, j.Incomplete())...)
}

// alike checks a plan against one trace.
func alike(source, of *column.Source) (report check.Report, err error) {
	p, err := plan.NewReader(source, source.Size(), source.Name())
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	return trace.ReadSource(of, func(r *trace.Reader) (check.Report, error) { return check.Alike(p, r) })
}
