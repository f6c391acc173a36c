package ranks

import (
	"fmt"
	"slices"
)

// Pair is one GPU of one rank in two jobs.
type Pair struct {
	Rank   int64 `json:"rank"`
	Device int32 `json:"device"`
	A      *Rank `json:"a"`
	B      *Rank `json:"b"`
}

// Pairs returns the GPUs of ranks that both tables have, and the ranks that only one has.
func Pairs(a, b *Table) (both []Pair, alone []int64) {
	type key struct {
		trace  string
		device int32
	}
	of := map[key]*Rank{}
	for _, r := range a.Ranks {
		of[key{r.key, r.Device}] = r
	}
	for _, r := range b.Ranks {
		k := key{r.key, r.Device}
		if other := of[k]; other != nil {
			both = append(both, Pair{r.Rank, r.Device, other, r})
			delete(of, k)
		} else {
			alone = append(alone, r.Rank)
		}
	}
	for _, r := range a.Ranks {
		if of[key{r.key, r.Device}] == r {
			alone = append(alone, r.Rank)
		}
	}
	return both, alone
}

// Unpaired returns an error for ranks that only one of two jobs has; nil without any.
func Unpaired(alone []int64) error {
	if len(alone) == 0 {
		return nil
	}
	sorted := slices.Compact(slices.Sorted(slices.Values(alone)))
	return fmt.Errorf("only one of the jobs has %s", Names(sorted))
}
