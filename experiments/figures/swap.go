package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"gm/internal/swap/link"
)

// swapResults is what experiments/swap/h200.py measured on H200s.
const swapResults = "experiments/swap/results/swap.json"

// swapLink is what gmswap bandwidth measured there.
const swapLink = "experiments/swap/results/link.json"

// swapRun is a training of some steps, or a sweep over policies.
type swapRun struct {
	Section, Mode, Model string
	Tokens               int
	Code                 *int // exit status; null if time was up before the end
	Steps                []struct{ Loss, Gradients string }
	MedianS              float64 `json:"median_s"`
	Allocated            float64 // bytes
	Account              *struct {
		Lanes struct {
			BytesOut float64 `json:"bytes_out"`
			BytesIn  float64 `json:"bytes_in"`
			OutBusy  float64 `json:"out_busy_ns"`
			InBusy   float64 `json:"in_busy_ns"`
		}
		Schedule struct {
			StepNS float64 `json:"step_ns"`
			Peak   float64
		}
	}
	Results []swept
}

// swept is what was foreseen and measured under a policy.
type swept struct {
	Policy       string
	ForeseenS    float64 `json:"foreseen_s"`
	MeasuredS    float64 `json:"measured_s"`
	ForeseenPeak float64 `json:"foreseen_peak"`
	MeasuredPeak float64 `json:"measured_peak"`
}

// alpha returns the fraction of a policy like memo=0.5, and NaN for others.
func (s *swept) alpha() float64 {
	alpha, err := strconv.ParseFloat(strings.TrimPrefix(s.Policy, "memo="), 64)
	if err != nil {
		return math.NaN()
	}
	return alpha
}

// swapRuns are all of them.
type swapRuns []swapRun

// measureSwap works out the figures of gmswap from what was measured on H200s: there is none here.
func measureSwap(e *experiment) error {
	text, err := os.ReadFile(swapResults)
	if err != nil {
		return err
	}
	var runs swapRuns
	if err := json.Unmarshal(text, &runs); err != nil {
		return fmt.Errorf("read %s: %w", swapResults, err)
	}
	for _, tokens := range []int{16384, 32768, 65536} {
		runs.llama(e, tokens)
	}
	if err := runs.foreseen(e); err != nil {
		return err
	}
	runs.longest(e)
	runs.sweeps(e)
	runs.kind(e, "kinds", "compiled", 0.75)
	runs.kind(e, "kinds", "checkpoints", 0.97)
	runs.kind(e, "kinds", "accumulated", 0.75)
	runs.kind(e, "parallel", "ddp", 0.75)
	runs.kind(e, "parallel", "fsdp2", 0.75)
	if err := measureByHand(e); err != nil {
		return err
	}
	return measureBeyond(e)
}

// find returns a run, an empty one if there is none, of so many tokens if they are not 0.
func (runs swapRuns) find(section, mode string, tokens int) *swapRun {
	for i := range runs {
		if r := &runs[i]; r.Section == section && r.Mode == mode && (tokens == 0 || r.Tokens == tokens) {
			return r
		}
	}
	return new(swapRun)
}

// kind adds what a kind of training takes when a part of its memory is asked for.
func (runs swapRuns) kind(e *experiment, section, kind string, part float64) {
	plain, moved := runs.find(section, kind, 0), runs.find(section, kind+" gmswap", 0)
	memory := moved.Allocated / plain.Allocated
	e.add("swap: "+kind, fmt.Sprintf("%.3f of the memory, %.3f of the time", memory, moved.MedianS/plain.MedianS),
		fmt.Sprintf("%.2f of the memory, same gradients", part), memory <= part && sameBits(plain, moved))
}

// llama adds what 8 layers take in 70 % of the memory, and in that of recomputation.
func (runs swapRuns) llama(e *experiment, tokens int) {
	plain, again := runs.find("llama", "plain", tokens), runs.find("llama", "recompute", tokens)
	most, least := runs.find("llama", fmt.Sprintf("gmswap 70 %% %dK", tokens>>10), 0), runs.find("llama", fmt.Sprintf("gmswap recompute %dK", tokens>>10), 0)
	name := fmt.Sprintf("swap: %d tokens, ", tokens)
	memory, step := most.Allocated/plain.Allocated, most.MedianS/plain.MedianS
	e.add(name+"70 %", fmt.Sprintf("%.3f of the memory, %.3f of the time", memory, step), "0.7 and 1.02, same losses",
		memory <= 0.7 && step <= 1.02 && sameBits(plain, most))
	memory, speed := least.Allocated/again.Allocated, again.MedianS/least.MedianS
	e.add(name+"against recomputing", fmt.Sprintf("%.3f of the memory, %.3f times the throughput", memory, speed), "1 and 1.2, same losses",
		memory <= 1.0005 && speed >= 1.2 && sameBits(plain, least))
	if cpu := runs.find("llama", "save_on_cpu", tokens); cpu.MedianS > 0 {
		e.add(name+"against save_on_cpu", fmt.Sprintf("%.2f times the throughput", cpu.MedianS/least.MedianS), "3", cpu.MedianS >= 3*least.MedianS)
	}
}

// sameBits tells whether losses, and gradients where they were looked at, were the same in all steps.
func sameBits(a, b *swapRun) bool {
	for i := range a.Steps {
		if i >= len(b.Steps) || a.Steps[i] != b.Steps[i] {
			return false
		}
	}
	return len(a.Steps) > 0
}

// foreseen adds how far schedules are from what they came to, and how fast copies were.
func (runs swapRuns) foreseen(e *experiment) error {
	figures, err := link.Read(swapLink)
	if err != nil {
		return err
	}
	n, step, peak, slowest := 0, 0.0, 0.0, math.Inf(1)
	for _, r := range runs {
		if r.Account == nil || r.Section != "llama" && r.Section != "pair" && r.Section != "follow" {
			continue
		}
		n++
		step = max(step, math.Abs(r.Account.Schedule.StepNS/1e9/r.MedianS-1))
		peak = max(peak, math.Abs(r.Account.Schedule.Peak/r.Allocated-1))
		l := r.Account.Lanes
		slowest = min(slowest, l.BytesOut/l.OutBusy, l.BytesIn/l.InBusy)
	}
	e.add(fmt.Sprintf("swap: foreseen, of %d runs of 8 layers", n), fmt.Sprintf("steps within %.1f %%, peaks within %.2f %%", 100*step, 100*peak), "5 %, 1 %", step <= 0.05 && peak <= 0.01)
	rates := figures.GPUs[0].Alone
	gives := float64(rates[len(rates)-1].Out) / 1e9
	e.add("swap: the slowest copies of these", fmt.Sprintf("%.1f of %.1f GB/s, %.3f", slowest, gives, slowest/gives), "0.95", slowest >= 0.95*gives)
	return nil
}

// longest adds the longest sequence that 40 GB hold.
func (runs swapRuns) longest(e *experiment) {
	fits := map[string]int{}
	for _, r := range runs {
		if r.Section == "longest" && r.Code != nil && *r.Code == 0 {
			fits[r.Mode] = max(fits[r.Mode], r.Tokens)
		}
	}
	for _, mode := range []string{"plain", "save_on_cpu", "recompute", "recompute expandable"} {
		e.add("swap: longest sequence in 40 GB", fmt.Sprintf("%d tokens", fits["gmswap"]), fmt.Sprintf("%s: %d", mode, fits[mode]), fits["gmswap"] > fits[mode])
	}
}

// sweeps adds how far policy memo is from what was foreseen of it, fraction by fraction.
func (runs swapRuns) sweeps(e *experiment) {
	for _, r := range runs {
		if len(r.Results) == 0 {
			continue
		}
		step, peak := 0.0, 0.0
		best, foreseen := r.Results[0], r.Results[0]
		for _, x := range r.Results {
			step = max(step, math.Abs(x.ForeseenS/x.MeasuredS-1))
			peak = max(peak, math.Abs(x.ForeseenPeak/x.MeasuredPeak-1))
			if x.MeasuredS < best.MeasuredS {
				best = x
			}
			if x.ForeseenS < foreseen.ForeseenS {
				foreseen = x
			}
		}
		a, b := best.alpha(), foreseen.alpha()
		e.add(fmt.Sprintf("swap: alpha, %s, %d tokens, %d of 9", r.Model, r.Tokens, len(r.Results)),
			fmt.Sprintf("steps within %.1f %%, peaks %.2f %%, best %g and %g", 100*step, 100*peak, b, a), "5 %, 1 %, 1/8 apart",
			step <= 0.05 && peak <= 0.01 && math.Abs(a-b) <= 0.125)
	}
}
