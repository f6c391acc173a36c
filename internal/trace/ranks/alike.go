package ranks

import (
	"fmt"
	"slices"
)

// Group is the ranks whose traces make the same requests on each of their GPUs. A plan of one fits all.
type Group struct {
	Ranks []int64
	File  string // of the first
}

// Groups returns the ranks that are alike, the largest group first.
func (t *Table) Groups() []Group {
	var files []string
	sequences, rank := map[string]string{}, map[string]int64{}
	for _, r := range t.Ranks {
		if _, ok := sequences[r.File]; !ok {
			files = append(files, r.File)
			rank[r.File] = r.Rank
		}
		sequences[r.File] += fmt.Sprintf("%d:%d;", r.Device, r.Sequence)
	}
	var all []Group
	at := map[string]int{}
	for _, file := range files {
		i, ok := at[sequences[file]]
		if !ok {
			i = len(all)
			at[sequences[file]] = i
			all = append(all, Group{File: file})
		}
		all[i].Ranks = append(all[i].Ranks, rank[file])
	}
	slices.SortStableFunc(all, func(a, b Group) int { return len(b.Ranks) - len(a.Ranks) })
	return all
}
