package main

import "fmt"

// savedResults is what experiments/order/saved.py measured on a CPU: a row for each model and way of choosing what is saved.
const savedResults = "experiments/order/results/saved-cpu.csv"

// savedRow is what a step took: peaks in bytes beside what there was before, and microseconds that are spent recomputing, by gm's estimate.
type savedRow struct {
	model, way, setting          string
	limit, peak, estimate, again float64
}

// measureSaved compares gm's choice of what compiled models save with PyTorch's, under limits that are what PyTorch's shares took.
func measureSaved(e *experiment) error {
	rows, err := readNamed(savedResults)
	if err != nil {
		return err
	}
	shares := map[string]savedRow{} // of PyTorch's, by model and share
	for i, row := range rows {
		r := savedRow{model: row["model"], way: row["way"], setting: row["setting"]}
		if err := numbers(row, map[string]*float64{"limit": &r.limit, "peak": &r.peak, "estimate": &r.estimate, "again_us": &r.again}); err != nil {
			return fmt.Errorf("read %s: row %d: %w", savedResults, i+1, err)
		}
		name := "compiled: " + r.model + ", "
		switch r.way {
		case "plain":
			shares[r.model] = r
		case "budget":
			shares[r.model+"as budget "+r.setting] = r
			e.table.Add(name+"PyTorch's share "+r.setting, fmt.Sprintf("a peak of %.3f of plain's, %.0f us", r.peak/shares[r.model].peak, r.again), "", "")
		case "gm":
			e.add(name+"limit: "+r.setting, fmt.Sprintf("a peak of %.3f of the limit, estimated %.3f", r.peak/r.limit, r.estimate/r.limit), "1", r.peak <= r.limit)
			if share, ok := shares[r.model+r.setting]; ok {
				e.add(name+"recomputing, limit: "+r.setting, fmt.Sprintf("%.0f us", r.again), fmt.Sprintf("%.0f us", share.again), r.again <= share.again)
			}
		}
	}
	return nil
}
