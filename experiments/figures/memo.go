package main

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"os"
	"time"

	"gm/internal/models/graphs"
	"gm/internal/report"
	"gm/internal/swap"
	"gm/internal/swap/alpha"
	"gm/internal/swap/policy"
	"gm/internal/swap/simulate"
)

// MEMO's testbed (SIGMOD 2025, section 5.1), as far as its GPUs' rates do not say it: eight GPUs share 2 TB of host memory, and the link is said
// to give 32 GB/s, which is the rate of PCIe 4 without its overhead. Table 5 has copies take longer than a layer at 192K, where at 32 GB/s
// they would hide, so the link is taken as shared by two GPUs, of the 24 to 25 GB/s that an A100 gets alone. Of a GPU's 80 GiB PyTorch sees 79.15.
const (
	memoLink   = bandwidth(12e9)
	memoSaid   = bandwidth(32e9)
	memoHost   = int64(2e12) / 8
	memoDevice = int64(7915 * (1 << 30) / 100)
	memoModel  = "gpt-7b,seq=%dK,tp=4,cp=2"
)

// memoPinned returns the bytes of a GPU's host memory that can hold activations if each layer but two has a pinned buffer of its own: PyTorch
// rounds pinned memory up to a power of two.
func memoPinned(layers int) int64 {
	buffers := int64(layers - 2)
	return buffers << (bits.Len64(uint64(memoHost/buffers)) - 1)
}

// memoWithin is how far MFU may be from the paper's.
const memoWithin = 0.15

// bandwidth is a link of so many bytes a second each way.
type bandwidth float64

// OutTime implements swap.Copier.
func (b bandwidth) OutTime(bytes int64) time.Duration {
	return time.Duration(float64(bytes) / float64(b) * float64(time.Second))
}

// InTime implements swap.Copier.
func (b bandwidth) InTime(bytes int64) time.Duration { return b.OutTime(bytes) }

// cell is a measurement of MEMO's tables: MFU in percent, or one of what follows.
type cell float64

const (
	oom  cell = -1 // no GPU memory
	oohm cell = -2 // no host memory
)

func (c cell) String() string {
	switch c {
	case oom:
		return "oom"
	case oohm:
		return "oohm"
	}
	return fmt.Sprintf("%.2f", float64(c))
}

// memoRow is a row of a table: what is measured, and the paper's cells.
type memoRow struct {
	name  string
	paper []cell
	run   func(column int) (cell, error)
}

// memoScore is how a table compares with the paper's.
type memoScore struct {
	cells, outs     int // cells, and those that agree on whether the memory suffices
	farthest, total float64
	both            int // cells with an MFU here and there
}

func (s *memoScore) add(got, paper cell) {
	s.cells++
	if got == paper || got >= 0 && paper >= 0 {
		s.outs++
	}
	if got >= 0 && paper >= 0 {
		ratio := float64(got/paper) - 1
		s.both++
		s.total += ratio
		if math.Abs(ratio) > math.Abs(s.farthest) {
			s.farthest = ratio
		}
	}
}

// memoTable runs and prints a table, and returns its cells.
func memoTable(title string, columns []string, rows []memoRow, score *memoScore) ([][]cell, error) {
	table := report.Table{Titles: append([]string{title}, columns...)}
	var all [][]cell
	for _, row := range rows {
		cells, texts := make([]cell, len(columns)), []string{row.name}
		for i := range columns {
			var err error
			if cells[i], err = row.run(i); err != nil {
				return nil, fmt.Errorf("%s, %s: %w", row.name, columns[i], err)
			}
			score.add(cells[i], row.paper[i])
			texts = append(texts, fmt.Sprintf("%v (%v)", cells[i], row.paper[i]))
		}
		all = append(all, cells)
		table.Add(texts...)
	}
	if err := table.Write(os.Stdout); err != nil {
		return nil, err
	}
	fmt.Println()
	return all, nil
}

// memoRun simulates a step of a schedule.
func memoRun(m *graphs.Model, actions []swap.Action) (cell, error) {
	r, err := simulate.Run(m.Graph, actions, memoLink, nil)
	switch {
	case err != nil:
		return 0, err
	case r.Host > memoPinned(len(newLayerwise(m.Graph).tensors)):
		return oohm, nil
	case r.Peak > memoDevice:
		return oom, nil
	}
	return cell(100 * m.MFU(r.Step)), nil
}

// memoPolicy simulates a step under gmswap's own policy of that name, which chooses alpha.
func memoPolicy(m *graphs.Model) (cell, error) {
	p, err := policy.Lookup("memo")
	if err != nil {
		return 0, err
	}
	s, err := p.Plan(m.Graph, swap.Limits{Device: memoDevice, Host: memoPinned(len(newLayerwise(m.Graph).tensors)), Link: memoLink})
	if short, ok := errors.AsType[*policy.ShortError](err); ok && short.Host {
		return oohm, nil
	} else if ok {
		return oom, nil
	}
	if err != nil {
		return 0, err
	}
	return memoRun(m, s.Actions)
}

// measureMemo simulates the 7B of MEMO's tables 4 and 5 on 8 GPUs, 4 of which split layers and 2 the sequence.
func measureMemo(e *experiment) error {
	var score memoScore
	gains, err := memoTableFour(&score)
	if err != nil {
		return err
	}
	best, err := memoTableFive(&score)
	if err != nil {
		return err
	}
	e.add("memo: cells of tables 4 and 5 that lack the same memory", fmt.Sprintf("%d of %d", score.outs, score.cells), "all", score.outs == score.cells)
	mean := score.total / float64(score.both)
	e.add("memo: MFU against the paper's", fmt.Sprintf("%+.1f %% in the mean, %+.1f %% at the worst", 100*mean, 100*score.farthest),
		fmt.Sprintf("within %.0f %%", 100*memoWithin), math.Abs(score.farthest) <= memoWithin)
	e.add("memo: MFU over full recomputation, over full swapping, in the mean", fmt.Sprintf("%.2f, %.2f", gains[0], gains[1]), "1.22, 1.13",
		math.Abs(gains[0]-1.22) < 0.05 && math.Abs(gains[1]-1.13) < 0.05)
	e.add("memo: alpha of the highest MFU at 192K, 256K, 320K, 384K", fmt.Sprint(best), "[0.75 1 0.75 0.5]", fmt.Sprint(best) == "[0.75 1 0.75 0.5]")
	if err := memoHides(e); err != nil {
		return err
	}
	memoHostRow(e)
	return memoModels(e)
}

// memoHides adds from which sequence on all copies hide. The paper has them exceed a layer's time at 192K and not at 256K.
func memoHides(e *experiment) error {
	const tokens = 256
	m, err := graphs.Build(fmt.Sprintf(memoModel, tokens))
	if err != nil {
		return err
	}
	layers, err := alpha.Of(m.Graph)
	if err != nil {
		return err
	}
	for _, link := range []struct {
		rate bandwidth
		from string
	}{{memoLink, "half a PCIe 4 link"}, {memoSaid, "as the paper says, not used"}} {
		times, _ := layers.Hides(float64(link.rate))
		name := fmt.Sprintf("memo: tokens from which all copies hide, at %.0f GB/s, %s", float64(link.rate)/1e9, link.from)
		if link.rate == memoSaid {
			e.add(name, fmt.Sprintf("%.0fK", tokens*times), "", true)
			continue
		}
		e.add(name, fmt.Sprintf("%.0fK", tokens*times), "192K to 256K", tokens*times > 192 && tokens*times <= tokens)
	}
	return nil
}

// memoHostRow adds what of the host memory holds activations.
func memoHostRow(e *experiment) {
	const layers = 32
	pinned := memoPinned(layers)
	e.add("memo: host memory for activations, 2 TB in pinned buffers of powers of two, one a layer",
		fmt.Sprintf("%d GiB a layer and GPU, %.4f TB in all", pinned/(layers-2)>>30, float64(8*pinned)/1e12), "", true)
}

// memoTableFour is that of the methods. What runs without a plan of memory lacks it to fragments, which are not simulated. It returns MFU of
// the last over that of the others, in the mean of the cells in which the paper has one.
func memoTableFour(score *memoScore) (gains [2]float64, err error) {
	kilotokens := []int64{64, 128, 256, 384, 512, 640, 768, 896}
	var columns []string
	var models []*graphs.Model
	for _, k := range kilotokens {
		m, err := graphs.Build(fmt.Sprintf(memoModel, k))
		if err != nil {
			return gains, err
		}
		columns, models = append(columns, fmt.Sprintf("%dK", k)), append(models, m)
	}
	swapping := func(g *swap.Graph) []swap.Action { return memoSchedule(g, 1) }
	fixed := func(schedule func(g *swap.Graph) []swap.Action) func(int) (cell, error) {
		return func(i int) (cell, error) { return memoRun(models[i], schedule(models[i].Graph)) }
	}
	rows := []memoRow{
		{"full recomputation", []cell{42.91, 43.17, 42.05, 42.49, 41.90, 42.15, oom, oom}, fixed(recomputation)},
		{"full swapping", []cell{37.40, 46.33, 53.62, oohm, oohm, oohm, oohm, oohm}, fixed(swapping)},
		{"memo", []cell{47.99, 50.96, 53.62, 53.04, 51.84, 52.59, 51.89, 52.71}, func(i int) (cell, error) { return memoPolicy(models[i]) }},
	}
	all, err := memoTable("table 4, MFU in % (paper)", columns, rows, score)
	if err != nil {
		return gains, err
	}
	over := func(row int) float64 {
		sum, n := 0.0, 0.0
		for i, cell := range all[row] {
			if cell >= 0 && rows[row].paper[i] >= 0 {
				sum, n = sum+float64(all[2][i]/cell), n+1
			}
		}
		return sum / n
	}
	return [2]float64{over(0), over(1)}, nil
}

// memoTableFive is that of alpha. It returns the best of each sequence.
func memoTableFive(score *memoScore) ([]float64, error) {
	const eighths = 8
	var columns []string
	for i := range eighths + 1 {
		columns = append(columns, fmt.Sprintf("%.3f", float64(i)/eighths))
	}
	var rows []memoRow
	for _, row := range []struct {
		kilotokens int64
		paper      []cell
	}{
		{192, []cell{51.04, 51.86, 52.14, 52.30, 52.72, 52.78, 53.11, 51.74, 49.69}},
		{256, []cell{52.03, 52.05, 52.19, 52.45, 52.70, 52.96, 53.21, 53.29, 53.62}},
		{320, []cell{52.15, 52.36, 52.52, 52.66, 52.92, 53.10, 53.35, oohm, oohm}},
		{384, []cell{52.09, 52.31, 52.45, 52.58, 53.04, oohm, oohm, oohm, oohm}},
	} {
		m, err := graphs.Build(fmt.Sprintf(memoModel, row.kilotokens))
		if err != nil {
			return nil, err
		}
		rows = append(rows, memoRow{fmt.Sprintf("%dK", row.kilotokens), row.paper, func(i int) (cell, error) {
			return memoRun(m, memoSchedule(m.Graph, float64(i)/eighths))
		}})
	}
	all, err := memoTable("table 5, MFU in % (paper), by alpha", columns, rows, score)
	if err != nil {
		return nil, err
	}
	var best []float64
	for _, cells := range all {
		at := 0
		for i := range cells {
			if cells[i] > cells[at] {
				at = i
			}
		}
		best = append(best, float64(at)/eighths)
	}
	return best, nil
}
