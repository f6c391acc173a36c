package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"gm/internal/bench/estimate"
	"gm/internal/bench/fit"
	"gm/internal/cli"
	"gm/internal/models/shapes"
	"gm/internal/models/synth"
	"gm/internal/report"
	"gm/internal/units"
)

type estimateCmd struct {
	Model    string `arg:"" name:"config.json|model" help:"The configuration of a model, as Hugging Face transformers writes it, or a model of gmtrace synth --list."`
	TP       int64  `name:"tp" placeholder:"N" default:"1" help:"GPUs that split each layer."`
	PP       int64  `name:"pp" placeholder:"N" default:"1" help:"Stages of a pipeline."`
	DP       int64  `name:"dp" placeholder:"N" default:"1" help:"Ranks that have batches of their own."`
	CP       int64  `name:"cp" placeholder:"N" default:"1" help:"GPUs that split each sequence."`
	EP       int64  `name:"ep" placeholder:"N" default:"1" help:"GPUs, of those of --dp and --cp, that split the experts."`
	Zero     int64  `placeholder:"0..3" default:"3" help:"What ranks share: 0 nothing, 1 optimizer states, 2 gradients too, 3 parameters too (FSDP)."`
	Batch    int64  `placeholder:"N" default:"1" help:"Sequences of a microbatch on each rank."`
	Micro    int64  `placeholder:"N" help:"Microbatches of a step. As many as stages by default."`
	Seq      string `placeholder:"TOKENS" default:"4Ki" help:"Tokens of a sequence, such as 8Ki."`
	Strategy string `placeholder:"LETTERS" default:"N" help:"As in gmtrace synth: R recomputation, M single precision for parameters, gradients and states, L LoRA, O offload."`
	Card     string `placeholder:"NAME" help:"Say whether it fits on this card, such as H100, and not on which. Exit status 1 if nothing fits."`
	JSON     bool   `name:"json" help:"Print JSON."`
}

// Help implements kong.HelpProvider.
func (cmd *estimateCmd) Help() string {
	return "Example: gmbench estimate config.json --tp 8 --pp 4 --dp 16 --zero 3 --batch 1 --seq 8Ki --strategy RM\n\n" +
		"A step of a GPU of each stage is executed on tensors without contents, and its trace is replayed through allocators. Nothing runs, and no GPU is needed."
}

// Run implements the command.
func (cmd *estimateCmd) Run(c *cli.Context) error {
	card, err := cmd.card()
	if err != nil {
		return err
	}
	job, err := cmd.job()
	if err != nil {
		return err
	}
	progress := c.Progress("estimate", job.Stages)
	e, err := estimate.Of(c.Context(), job, func() { progress.Add(1) })
	progress.End()
	if err != nil {
		return err
	}
	if cmd.JSON {
		err = cli.WriteJSON(c.Out, e)
	} else {
		err = cmd.print(c.Out, job, e, card)
	}
	return errors.Join(err, misfit(e, card))
}

// misfit returns an error if nothing fits on a card, or on any if there is none.
func misfit(e *estimate.Estimate, card *fit.Card) error {
	switch {
	case card == nil && e.Best() == nil:
		return errors.New("no setting fits on any card")
	case card != nil && e.On(*card) == nil:
		left := ""
		if e.Free > 0 {
			left = fmt.Sprintf(", with %.0f %% of the card left free", 100*e.Free)
		}
		return fmt.Errorf("no setting fits on %s: it has %s for tensors%s", card.Name, units.Bytes(e.Usable(*card)), left)
	}
	return nil
}

// card returns the card that is asked for, nil for none.
func (cmd *estimateCmd) card() (*fit.Card, error) {
	if cmd.Card == "" {
		return nil, nil
	}
	var names []string
	for _, card := range slices.Backward(fit.Cards()) { // of several of one name the largest
		if strings.EqualFold(cmd.Card, card.Name) || strings.EqualFold(cmd.Card, card.Short()) {
			return &card, nil
		}
		names = append(names, card.Name)
	}
	return nil, cli.Usage("--card: unknown, expected one of %s", strings.Join(names, ", "))
}

func (cmd *estimateCmd) job() (*synth.Job, error) {
	strategy, err := synth.ParseStrategy(cmd.Strategy)
	if err != nil {
		return nil, cli.Usage("%v", err)
	}
	model, err := cmd.model()
	if err != nil {
		return nil, err
	}
	fields := []string{"seq=" + cmd.Seq}
	for _, f := range []struct {
		name  string
		value int64
	}{
		{"batch", cmd.Batch}, {"ranks", cmd.DP}, {"zero", cmd.Zero}, {"tp", cmd.TP}, {"pp", cmd.PP}, {"cp", cmd.CP}, {"ep", cmd.EP}, {"micro", cmd.Micro},
	} {
		if f.name != "micro" || f.value != 0 {
			fields = append(fields, fmt.Sprintf("%s=%d", f.name, f.value))
		}
	}
	job, err := synth.New(model, fields, strategy)
	if err != nil {
		return nil, cli.Usage("%v", err)
	}
	return job, nil
}

// model reads a configuration, or looks a name up if there is no such file.
func (cmd *estimateCmd) model() (model shapes.Transformer, err error) {
	if model, err := shapes.Lookup(cmd.Model); err == nil {
		return model, nil
	}
	f, err := os.Open(cmd.Model)
	if errors.Is(err, os.ErrNotExist) {
		return model, fmt.Errorf("%s: there is no such file, nor such a model: gmtrace synth --list lists them", cmd.Model)
	}
	if err != nil {
		return model, fmt.Errorf("open a configuration: %w", err)
	}
	defer f.Close()
	return shapes.ReadConfig(f, cmd.Model)
}

func (cmd *estimateCmd) print(w io.Writer, job *synth.Job, e *estimate.Estimate, card *fit.Card) error {
	numbers := "bfloat16"
	if job.Strategy.Mixed {
		numbers = "float32, operators in bfloat16"
	}
	_, err := fmt.Fprintf(w, "%s: %.2f billion parameters on %s, %s x %d sequences of %s, %s\n\n", cmd.Model, float64(e.Parameters)/1e9,
		units.Count(e.GPUs, "GPU"), units.Count(job.Micro, "microbatch"), job.Batch, cmd.Seq, numbers)
	if err != nil {
		return err
	}
	if err := partTable(e).Write(w); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	if err := settingTable(e).Write(w); err != nil {
		return err
	}
	if _, err = fmt.Fprintf(w, "\n%s\n%s", verdictOf(e, card), cautions(e)); err != nil {
		return err
	}
	return printSwap(w, e, card)
}

func partTable(e *estimate.Estimate) *report.Table {
	t := &report.Table{Titles: []string{"stage", "layers", "live at the peak"}}
	for _, p := range e.Stages[0].Parts {
		t.Titles = append(t.Titles, p.Tag)
	}
	t.Titles = append(t.Titles, "outside PyTorch")
	for _, s := range e.Stages {
		cells := []string{fmt.Sprint(s.Stage), fmt.Sprint(s.Layers), units.Bytes(s.Live).String()}
		for _, p := range s.Parts {
			cells = append(cells, units.Bytes(p.Bytes).String())
		}
		cells = append(cells, units.Bytes(s.Outside.Sum()).String())
		t.Add(cells...)
	}
	return t
}

func settingTable(e *estimate.Estimate) *report.Table {
	t := &report.Table{Titles: []string{"setting", "reserved at most", "in stage", "smallest card"}}
	for _, s := range e.Settings {
		card := "none"
		if s.Card != nil {
			card = cardText(*s.Card)
		}
		t.Add(settingText(s.Allocator), units.Bytes(s.Reserved).String(), fmt.Sprint(s.Stage), card)
	}
	return t
}

func cardText(card fit.Card) string { return fmt.Sprintf("%s (%d GB)", card.Name, card.GB) }

// settingText says what a user does for an allocator.
func settingText(allocator string) string {
	switch allocator {
	case "torch":
		return "PyTorch's default"
	case "expandable":
		return "expandable_segments:True"
	case "stitch":
		return "gmstitch run"
	}
	return "gmstitch run with a plan of gmplan"
}

// verdictOf says on which card the job fits, with which setting, and whether it does on one that was asked for.
func verdictOf(e *estimate.Estimate, asked *fit.Card) string {
	best, text := e.Best(), ""
	if asked != nil {
		if on := e.On(*asked); on != nil {
			return fitsText(e, *asked, on)
		}
		text = "does not fit on " + cardText(*asked) + "; "
	}
	if best == nil {
		return text + "fits on no card: share the model among more GPUs, or save memory with --strategy"
	}
	return text + fitsText(e, *best.Card, best)
}

func fitsText(e *estimate.Estimate, card fit.Card, best *estimate.Setting) string {
	return fmt.Sprintf("fits on %s, with %s, at %s of the %s that it has for tensors", cardText(card), settingText(best.Allocator),
		units.Bytes(best.Reserved), units.Bytes(e.Left(card)))
}

// cautions says, in lines, what is not in the figures.
func cautions(e *estimate.Estimate) string {
	text := ""
	if e.Free > 0 {
		text += fmt.Sprintf("%.0f %% of each card are left free: jobs whose layers are split took up to 14 %% more than estimated\n", 100*e.Free)
	}
	if e.GPUs > 1 {
		text += "outside PyTorch: CUDA's context, and NCCL's code and buffers as on GPUs of one host with NVLink and without its multicast\n"
	}
	return text
}
