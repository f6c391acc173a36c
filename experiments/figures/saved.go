package main

import (
	"cmp"
	"fmt"
	"slices"
)

// savedResults is what experiments/order/saved.py measured on a CPU and on an H200: a row for each model and way of choosing what is saved.
var savedResults = []string{"experiments/order/results/saved-cpu.csv", "experiments/order/results/saved-h200.csv"}

// savedRow is what a step took: peaks in bytes beside what there was before, and what it cost.
type savedRow struct {
	model, way, setting   string
	limit, peak, estimate float64
	cost                  float64 // seconds of a step, or those that are spent recomputing, by gm's estimate, where steps were not timed
	choose, compile       float64 // seconds until it was known what is saved, and of compiling with that
}

// measureSaved compares gm's choice of what compiled models save with PyTorch's, under limits that are what PyTorch's shares took.
func measureSaved(e *experiment) error {
	for _, path := range savedResults {
		table, err := readNamed(path)
		if err != nil {
			return err
		}
		rivals := map[string][]savedRow{} // PyTorch's, by model
		var ours []savedRow
		device := ""
		for i, named := range table {
			device = named["device"]
			r, err := parseSaved(named)
			if err != nil {
				return fmt.Errorf("read %s: row %d: %w", path, i+1, err)
			}
			switch {
			case r.way == "gm":
				ours = append(ours, r)
			case r.setting != "next numbers":
				rivals[r.model] = append(rivals[r.model], r)
			}
		}
		for _, r := range ours {
			r.print(e, device, rivals[r.model])
		}
	}
	return nil
}

func parseSaved(named map[string]string) (savedRow, error) {
	r := savedRow{model: named["model"], way: named["way"], setting: named["setting"]}
	cost, unit := "step_s", 1.0
	if named[cost] == "" {
		cost, unit = "again_us", 1e-6
	}
	err := numbers(named, map[string]*float64{"limit": &r.limit, "peak": &r.peak, "estimate": &r.estimate, "choose_s": &r.choose, "compile_s": &r.compile, cost: &r.cost})
	r.cost *= unit
	return r, err
}

// print compares a choice of gm's with its limit, and with what PyTorch's would take at the same peak.
func (r savedRow) print(e *experiment, device string, rivals []savedRow) {
	name := fmt.Sprintf("compiled on %s: %s, limit: %s", device, r.model, r.setting)
	e.add(name, fmt.Sprintf("a peak of %.3f of the limit, estimated %.3f", r.peak/r.limit, r.estimate/r.limit), "1", r.peak <= r.limit)
	took := "recomputed"
	if device == "cuda" {
		took = "a step"
		e.table.Add(name+": compiling", fmt.Sprintf("%.1f s, %.1f s of them choosing", r.compile, r.choose), "", "")
		for _, rival := range rivals {
			if r.setting == "as budget "+rival.setting {
				e.table.Add(name+": a step, by that of the share", fmt.Sprintf("%.3f", r.cost/rival.cost), "", "")
			}
		}
	}
	want, ok := costAt(rivals, r.peak)
	if !ok {
		e.table.Add(name+": "+took, fmt.Sprintf("%.2f ms", r.cost*1e3), "no share takes so little", "")
		return
	}
	e.add(name+": "+took, fmt.Sprintf("%.2f ms", r.cost*1e3), fmt.Sprintf("%.2f ms", want*1e3), r.cost <= want)
}

// costAt returns what PyTorch's choices cost that take a peak: between the two that are next to it, among those for which no other takes less
// memory and less time. It reports false if all take more.
func costAt(rows []savedRow, peak float64) (float64, bool) {
	rows = slices.Clone(rows)
	slices.SortFunc(rows, func(a, b savedRow) int { return cmp.Or(cmp.Compare(a.peak, b.peak), cmp.Compare(a.cost, b.cost)) })
	var best []savedRow
	for _, r := range rows {
		if len(best) == 0 || r.cost < best[len(best)-1].cost {
			best = append(best, r)
		}
	}
	i := slices.IndexFunc(best, func(r savedRow) bool { return r.peak > peak })
	switch i {
	case 0:
		return 0, false
	case -1:
		return best[len(best)-1].cost, true
	}
	low, high := best[i-1], best[i]
	return low.cost + (high.cost-low.cost)*(peak-low.peak)/(high.peak-low.peak), true
}
