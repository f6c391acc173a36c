package main

import (
	"fmt"
	"math"
	"os"

	"gm/internal/models/graphs"
	"gm/internal/report"
)

// memoSpec is a model on GPUs of which eight split each layer and the others the sequence; Adam's 12 bytes for each parameter are split by the
// latter, too, as Megatron-LM's distributed optimizer does. How the paper splits the models of its table 3 and figure 11 is in a supplement
// that is not at hand.
func memoSpec(size string, gpus, kilotokens int64) string {
	const tensor, weights, adam = 8, 2 + 4, 12
	context := gpus / tensor
	return fmt.Sprintf("gpt-%s,seq=%dK,tp=%d,cp=%d,state=%d", size, kilotokens, tensor, context, weights+(adam+context-1)/context)
}

// memoAt simulates a step of a model under the policy memo.
func memoAt(size string, gpus, kilotokens int64) (cell, error) {
	m, err := graphs.Build(memoSpec(size, gpus, kilotokens))
	if err != nil {
		return 0, err
	}
	return memoPolicy(m)
}

// memoThree has the rows of MEMO's table 3 that are MEMO's, from 64K tokens on: below, it falls back to Megatron-LM.
var memoThree = []struct {
	size  string
	gpus  int64
	paper []cell
}{
	{"7b", 8, []cell{52.34, 50.96, 53.62, 53.04, 51.84, 52.59, 51.89, 52.71, 52.30, oom, oom, oom}},
	{"13b", 16, []cell{52.65, 50.93, 51.22, 51.91, 52.40, 52.13, 51.71, 51.76, 52.06, 51.74, 51.78, 52.10}},
	{"30b", 32, []cell{52.12, 49.66, 50.00, 50.69, 51.06, 51.72, 51.18, 51.50, 51.24, 51.73, 51.59, oohm}},
	{"65b", 64, []cell{47.80, 48.61, 49.87, 48.85, 49.71, 50.05, 51.16, 51.05, 51.27, 51.20, 51.42, 51.45}},
}

// memoModels simulates MEMO's column of table 3, and its lines of figure 11.
func memoModels(e *experiment) error {
	kilotokens := []int64{64, 128, 256, 384, 512, 640, 768, 896, 1024, 1152, 1280, 1408}
	var columns []string
	for _, k := range kilotokens {
		columns = append(columns, fmt.Sprintf("%dK", k))
	}
	var rows []memoRow
	for _, m := range memoThree {
		rows = append(rows, memoRow{fmt.Sprintf("%s, %d GPUs", m.size, m.gpus), m.paper, func(i int) (cell, error) {
			return memoAt(m.size, m.gpus, kilotokens[i])
		}})
	}
	var score memoScore
	if _, err := memoTable("table 3, MFU of memo in % (paper)", columns, rows, &score); err != nil {
		return err
	}
	e.add("memo: cells of table 3 that lack the same memory", fmt.Sprintf("%d of %d", score.outs, score.cells), "all", score.outs == score.cells)
	e.add("memo: MFU against the paper's table 3", fmt.Sprintf("%+.1f %% in the mean, %+.1f %% at the worst", 100*score.total/float64(score.both), 100*score.farthest),
		fmt.Sprintf("within %.0f %%", 100*memoWithin), math.Abs(score.farthest) <= memoWithin)
	if err := memoLongest(e); err != nil {
		return err
	}
	return memoUnplanned(e)
}

// memoLongest finds the longest sequence of the 7B on 8 to 64 GPUs, in steps of 128K, and its MFU (figure 11, a and b). The paper has 1, 2, 4
// and 8 million tokens, and more than 50 %.
func memoLongest(e *experiment) error {
	table := report.Table{Titles: []string{"figure 11, 7b", "longest (paper)", "MFU in % (paper)"}}
	const step = 128
	met := true
	for _, gpus := range []int64{8, 16, 32, 64} {
		longest, mfu := int64(0), cell(0)
		for k := int64(step); k <= 2<<10*gpus/8; k += step {
			got, err := memoAt("7b", gpus, k)
			if err != nil {
				return err
			}
			if got >= 0 {
				longest, mfu = k, got
			}
		}
		paper := gpus << 10 / 8
		met = met && longest >= paper && mfu > 50
		table.Add(fmt.Sprintf("%d GPUs", gpus), fmt.Sprintf("%dK (%dK)", longest, paper), fmt.Sprintf("%v (over 50)", mfu))
	}
	e.add("memo: the longest sequence of the 7B on 8, 16, 32 and 64 GPUs", "the table above", "1M, 2M, 4M, 8M at over 50 %", met)
	if err := table.Write(os.Stdout); err != nil {
		return err
	}
	fmt.Println()
	return nil
}
