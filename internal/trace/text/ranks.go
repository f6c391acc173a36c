package text

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"gm/internal/report"
	"gm/internal/trace/ranks"
	"gm/internal/units"
)

// Ranks prints the table of a job's ranks. Ranks in sequence that agree in all of it share a row.
func Ranks(w *strings.Builder, t *ranks.Table) error {
	RankFacts(w, t)
	w.WriteString("\n")
	table, _ := RankTable(t)
	return table.Write(w)
}

// RankFacts prints what holds for all ranks, and those that stand out.
func RankFacts(w *strings.Builder, t *ranks.Table) {
	line(w, "ranks", "%s", ranksLine(t))
	s := t.Spread
	line(w, "peaks", "%s to %s, median %s; the most is %.1f %% above the mean", units.Bytes(s.Least), units.Bytes(s.Most), units.Bytes(s.Median),
		100*s.Imbalance)
	for _, p := range t.Parts {
		line(w, p.What+"s", "%d, with mean peaks of %s (%s %d) to %s (%s %d); within one, the most is %.1f %% above its mean",
			p.Count, units.Bytes(p.Least.Mean), p.What, p.Least.Number, units.Bytes(p.Most.Mean), p.What, p.Most.Number, 100*p.Within)
	}
	if len(t.Ranks) > 0 {
		first := t.Ranks[t.First]
		line(w, "first out", "%s, which needs %s", ranks.Name(first.Rank), units.Bytes(first.Need()))
	}
	for _, o := range t.Outliers {
		line(w, "outlier", "%s", o)
	}
}

func ranksLine(t *ranks.Table) string {
	text := fmt.Sprint(len(t.Ranks))
	if t.World > 0 {
		text += fmt.Sprintf(" of %d", t.World)
	}
	if t.Alike == 1 {
		return text + ", all with the same requests"
	}
	return text + fmt.Sprintf(", with %d different sequences of requests", t.Alike)
}

// RankTable returns the table of Ranks, and which ranks each row is of.
func RankTable(t *ranks.Table) (*report.Table, [][]int64) {
	var all stretches
	for _, r := range t.Ranks {
		all.add(r.Rank, cellsOf(t, r))
	}
	return all.table("rank", "gpu", "peak", "reserved", "waste", "NCCL", "iterations", "each", "alike"), all.of
}

// stretches are rows of ranks in sequence; those with equal cells share a row.
type stretches struct {
	rows [][]string
	of   [][]int64
}

func (s *stretches) add(rank int64, cells []string) {
	if n := len(s.rows) - 1; n >= 0 && slices.Equal(s.rows[n], cells) {
		s.of[n] = append(s.of[n], rank)
		return
	}
	s.rows, s.of = append(s.rows, cells), append(s.of, []int64{rank})
}

func (s *stretches) table(titles ...string) *report.Table {
	table := &report.Table{Titles: titles}
	for i, cells := range s.rows {
		table.Add(append([]string{ranks.Numbers(s.of[i])}, cells...)...)
	}
	return table
}

// RankPairs prints how the ranks of two jobs differ.
func RankPairs(w *strings.Builder, both []ranks.Pair) error {
	var all stretches
	change := func(a, b int64) string {
		if a == 0 {
			return "-"
		}
		return fmt.Sprintf("%+.1f %%", 100*float64(b-a)/float64(a))
	}
	known := func(bytes int64) string {
		if bytes == 0 {
			return "-"
		}
		return units.Bytes(bytes).String()
	}
	worst := 0
	for i, p := range both {
		all.add(p.Rank, []string{
			fmt.Sprint(p.Device), known(p.A.Peak), known(p.B.Peak), change(p.A.Peak, p.B.Peak), known(p.A.Reserved), known(p.B.Reserved),
			change(p.A.Reserved, p.B.Reserved), change(p.A.IterationNS, p.B.IterationNS),
		})
		if q := both[worst]; p.B.Need()-p.A.Need() > q.B.Need()-q.A.Need() {
			worst = i
		}
	}
	p := both[worst]
	line(w, "ranks", "%d in both", len(both))
	if grown := p.B.Need() - p.A.Need(); grown > 0 {
		line(w, "most grown", "%s, which needs %s more: gmtrace diff %s %s", ranks.Name(p.Rank), units.Bytes(grown), p.A.File, p.B.File)
	}
	w.WriteString("\n")
	return all.table("rank", "gpu", "peak", "then", "change", "reserved", "then", "change", "iteration").Write(w)
}

func cellsOf(t *ranks.Table, r *ranks.Rank) []string {
	known := func(bytes, of int64) string {
		if of == 0 {
			return "-"
		}
		return units.Bytes(bytes).String()
	}
	waste, nccl := known(r.Waste, r.Reserved), known(r.NCCL, r.Held)
	if r.Reserved > 0 {
		waste += fmt.Sprintf(" (%.1f %%)", 100*float64(r.Waste)/float64(r.Reserved))
	}
	if r.NCCL > 0 {
		nccl += fmt.Sprintf(" (%.1f %%)", 100*float64(r.NCCL)/float64(r.Held))
	}
	each := "-"
	if r.Iterations > 0 {
		each = r.Duration().Round(time.Millisecond).String()
	}
	alike := "all"
	if t.Alike > 1 {
		alike = fmt.Sprintf("%c", 'a'+r.Sequence%26)
		if r.Sequence >= 26 {
			alike += fmt.Sprint(r.Sequence / 26)
		}
	}
	return []string{
		fmt.Sprint(r.Device), units.Bytes(r.Peak).String(), known(r.Reserved, r.Reserved), waste, nccl, fmt.Sprint(r.Iterations), each, alike,
	}
}
