package main

import (
	"fmt"
	"io"
	"strings"

	"gm/internal/report"
	"gm/internal/swap"
	"gm/internal/swap/simulate"
	"gm/internal/units"
)

// account is a simulated step in numbers.
type account struct {
	Graph      string  `json:"graph"`
	Device     string  `json:"device"`
	Policy     string  `json:"policy"`
	GPUs       int64   `json:"gpus"` // that copy at the same time
	Actions    int     `json:"actions"`
	StepNS     int64   `json:"step_ns"`
	PlainNS    int64   `json:"plain_ns"` // with nothing moved
	RemadeNS   int64   `json:"recomputed_ns"`
	WaitOutNS  int64   `json:"wait_out_ns"`
	WaitInNS   int64   `json:"wait_in_ns"`
	Peak       int64   `json:"peak_bytes"`
	PeakOp     int32   `json:"peak_operator"`
	PeakName   string  `json:"peak_name"`
	PeakPhase  string  `json:"peak_phase"`
	PlainPeak  int64   `json:"plain_peak_bytes"`
	Host       int64   `json:"host_bytes"`
	Out        int64   `json:"out_bytes"`
	In         int64   `json:"in_bytes"`
	OutNS      int64   `json:"out_ns"`
	InNS       int64   `json:"in_ns"`
	Overlap    float64 `json:"overlap"`
	Copied     int     `json:"copied_tensors"`
	Recomputed int     `json:"recomputed_tensors"`
}

func (s *simulation) account() *account {
	r := s.result
	op := &s.graph.Ops[r.PeakOp]
	a := &account{
		Graph: s.graph.Name, Device: s.graph.Device, Policy: s.schedule.Policy, Actions: r.Actions, StepNS: int64(r.Step), PlainNS: int64(s.plain.Step),
		RemadeNS: int64(r.Recomputed), WaitOutNS: int64(r.Stalls[simulate.WaitOut]), WaitInNS: int64(r.Stalls[simulate.WaitIn]),
		Peak: r.Peak, PeakOp: r.PeakOp, PeakName: op.Name, PeakPhase: op.Phase.String(), PlainPeak: s.plain.Peak,
		Host: r.Host, Out: r.Out, In: r.In, OutNS: int64(r.OutBusy), InNS: int64(r.InBusy), Overlap: r.Overlap(),
	}
	a.GPUs = max(1, s.schedule.Meta.GPUs)
	a.Copied, a.Recomputed = tensorsOf(s.schedule.Actions, swap.Offload), tensorsOf(s.schedule.Actions, swap.Recompute)
	return a
}

// tensorsOf counts the tensors that have an action of a kind.
func tensorsOf(actions []swap.Action, kind swap.Kind) int {
	tensors := map[int32]bool{}
	for _, a := range actions {
		if a.Kind == kind {
			tensors[a.Tensor] = true
		}
	}
	return len(tensors)
}

// print prints the step for people.
func (s *simulation) print(w io.Writer) error {
	var text strings.Builder
	line := func(title, format string, args ...any) {
		fmt.Fprintf(&text, "%-12s%s\n", title, report.Printable(fmt.Sprintf(format, args...)))
	}
	a, r := s.account(), s.result
	line("graph", "%s, %s and %s%s", a.Graph, units.Count(len(s.graph.Ops), "operator"), units.Count(len(s.graph.Tensors), "tensor"), on(a.Device))
	if a.Actions == 0 {
		line("policy", "%s: nothing is moved", a.Policy)
		line("step", "%s", timeText(r.Step))
	} else {
		line("policy", "%s: %d tensors are copied, %d recomputed, by %d actions", a.Policy, a.Copied, a.Recomputed, a.Actions)
		line("step", "%s, %s against %s with nothing moved", timeText(r.Step), change(r.Step, s.plain.Step), timeText(s.plain.Step))
	}
	line("peak", "%s%s", units.Bytes(r.Peak), s.against())
	line("at", "%s", place(s.graph, r.PeakOp))
	if a.Copied > 0 {
		line("host", "%s", units.Bytes(r.Host))
		line("copied", "%s out in %s, %s back in %s%s", units.Bytes(r.Out), timeText(r.OutBusy), units.Bytes(r.In), timeText(r.InBusy), beside("with", a.GPUs))
		line("overlap", "%.1f%% of the time of copies is hidden", 100*r.Overlap())
		line("waits", "%s for copies out, %s for copies back", timeText(r.Stalls[simulate.WaitOut]), timeText(r.Stalls[simulate.WaitIn]))
	}
	if a.Recomputed > 0 {
		line("recomputed", "%s", timeText(r.Recomputed))
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// against names the peak of a step with nothing moved, if it is another one.
func (s *simulation) against() string {
	if s.plain.Peak == s.result.Peak {
		return ""
	}
	return fmt.Sprintf(" of %s with nothing moved", units.Bytes(s.plain.Peak))
}

// beside says behind a word how many GPUs copy at the same time, if there are several.
func beside(word string, gpus int64) string {
	if gpus < 2 {
		return ""
	}
	return fmt.Sprintf(", %s %d GPUs that copy at the same time", word, gpus)
}

// on names a device, if it is known.
func on(device string) string {
	if device == "" {
		return ""
	}
	return ", on " + device
}
