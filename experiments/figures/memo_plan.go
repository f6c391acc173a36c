package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"gm/internal/bench"
	"gm/internal/bench/replay"
	"gm/internal/report"
	"gm/internal/units"
)

// memoSynth makes a trace whose activations have the sizes of those in section 5.3: eight GPUs have an eighth of the tokens each, in place of 4 x 2.
// Its states are those of FSDP in half precision, 8 bytes for each parameter in all, where Megatron-LM has 18.
const memoSynth = "gpt-7b,ranks=8,batch=1,seq=%dK,device=a800"

// memoUnplanned replays full recomputation through PyTorch's allocator and by a plan, on the memory of a GPU: the first two rows of table 4. The
// paper's longest sequences are 384K and 640K. How fast it is when the allocator empties its cache is not simulated.
func memoUnplanned(e *experiment) error {
	table := report.Table{Titles: []string{"full recomputation", "torch", "retries", "planned", "paper"}}
	specs, err := bench.ParseSpecs("torch,planned")
	if err != nil {
		return err
	}
	papers := []struct {
		kilotokens int64
		paper      string
	}{
		{64, "runs, runs"}, {128, "runs, runs"}, {256, "runs, runs"}, {384, "runs, runs"}, {512, "oom, runs"}, {640, "oom, runs"}, {768, "oom, oom"}, {896, "oom, oom"},
	}
	agree := 0
	file := filepath.Join(e.dir, "memo.parquet")
	for _, p := range papers {
		if _, err := gmtraceSynth(file, fmt.Sprintf(memoSynth, p.kilotokens/8), "--strategy", "R", "--steps", "3"); err != nil {
			return err
		}
		programs, err := replay.Open(file)
		if err != nil {
			return err
		}
		rows, err := bench.Compare(context.Background(), programs, specs, memoDevice, func() {})
		if err != nil {
			return err
		}
		ends, texts := "", []string{}
		for _, r := range rows {
			end, text := "runs", units.Bytes(r.PeakReserved).String()
			if r.OOM != nil {
				end, text = "oom", "oom"
			}
			if ends != "" {
				ends += ", "
			}
			ends, texts = ends+end, append(texts, text)
		}
		if ends == p.paper {
			agree++
		}
		table.Add(fmt.Sprintf("%dK", p.kilotokens), texts[0], fmt.Sprint(rows[0].Retries), texts[1], p.paper)
	}
	e.add("memo: full recomputation in PyTorch's allocator and by a plan, sequences that end as the paper's", fmt.Sprintf("%d of %d", agree, len(papers)), "all", agree == len(papers))
	if err := table.Write(os.Stdout); err != nil {
		return err
	}
	fmt.Println()
	return nil
}
