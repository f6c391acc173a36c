package ranks

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Parts is what a job is split into, such as the stages of a pipeline, where all of its traces say which they are of.
type Parts struct {
	What   string  `json:"what"` // stage or expert
	Count  int     `json:"count"`
	Least  Part    `json:"least"`
	Most   Part    `json:"most"`
	Within float64 `json:"imbalance_within"` // the largest imbalance among the ranks of one part
}

// Part is one of them.
type Part struct {
	Number int64 `json:"number"`
	Mean   int64 `json:"mean_peak_bytes"`
}

// partNames are the keys of folders that say of which part of a job a trace is, such as stage=2.
var partNames = [...]string{"stage", "expert"}

// part returns the number of the part that a trace is of: by the name of a folder or, for a stage of gmtrace synth, by its rank.
func (m *Member) part(what string) (number int64, ok bool) {
	if text, ok := hive(m.File, what); ok {
		n, err := strconv.ParseInt(text, 10, 32)
		return n, err == nil
	}
	spec, made := strings.CutPrefix(m.Meta.Source, synthetic)
	if what != "stage" || !made || m.Meta.WorldSize <= 0 {
		return 0, false
	}
	spec, _, _ = strings.Cut(spec, " ")
	for field := range strings.SplitSeq(spec, ",") {
		if text, ok := strings.CutPrefix(field, "pp="); ok {
			stages, err := strconv.ParseInt(text, 10, 32)
			return m.Rank * stages / m.Meta.WorldSize, err == nil && stages > 0
		}
	}
	return 0, false
}

// parts finds how peaks differ between the parts of a job, and within them.
func (j *Job) parts(rows []*Rank) []Parts {
	all := []Parts{}
	byFile := map[string]*Member{}
	for _, m := range j.Members {
		byFile[m.path] = m
	}
	for _, what := range partNames {
		peaks, known := map[int64][]int64{}, true
		for _, r := range rows {
			number, ok := byFile[r.File].part(what)
			peaks[number] = append(peaks[number], r.Peak)
			known = known && ok
		}
		if known && len(peaks) > 1 {
			all = append(all, partsOf(what, peaks))
		}
	}
	return all
}

func partsOf(what string, peaks map[int64][]int64) Parts {
	parts := Parts{What: what, Count: len(peaks)}
	var means []Part
	for number, of := range peaks {
		sum := 0.0
		for _, peak := range of {
			sum += float64(peak)
		}
		mean := sum / float64(len(of))
		means = append(means, Part{number, int64(mean)})
		if mean > 0 {
			parts.Within = max(parts.Within, (float64(slices.Max(of))-mean)/mean)
		}
	}
	slices.SortFunc(means, func(a, b Part) int { return cmp.Or(cmp.Compare(a.Mean, b.Mean), cmp.Compare(a.Number, b.Number)) })
	parts.Least, parts.Most = means[0], means[len(means)-1]
	return parts
}
