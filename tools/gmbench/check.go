package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"gm/internal/bench"
	"gm/internal/bench/replay"
	"gm/internal/cli"
	"gm/internal/torch/allocconf"
	"gm/internal/trace/ranks"
	"gm/internal/units"
)

type checkCmd struct {
	Before   string            `arg:"" name:"trace|plan" help:"The trace of the job as it was: a trace, a plan, a recording that gmtrace import reads, or the folder with the traces of its ranks."`
	After    string            `arg:"" name:"after" help:"The trace of the job as it is."`
	Peak     *growth           `placeholder:"+5%|+SIZE" help:"How much the peak of live bytes of a GPU may grow. +5% by default, if neither --reserved nor --tag is given."`
	Reserved *growth           `placeholder:"+5%|+SIZE" help:"How much the memory that PyTorch's allocator reserves for it, with the recorded settings, may grow."`
	Tag      map[string]string `placeholder:"TAG=+5%|+SIZE" help:"How much more the tensors of a tag may hold at a time, such as activations=+5%. May be repeated."`
	JSON     bool              `name:"json" help:"Print JSON."`
	Markdown bool              `help:"Print a table in Markdown, for the page of a continuous integration."`
	JUnit    string            `name:"junit" placeholder:"FILE" help:"Write the results as JUnit's XML as well."`

	tags map[string]growth // of Tag
}

// Help implements kong.HelpProvider.
func (cmd *checkCmd) Help() string {
	return "For continuous integration. Exit status: 0 if no GPU needs more than is allowed; 1 if one does, or if a request failed and none did before; " +
		"2 if that cannot be said, because a file is missing, damaged or of other GPUs, or for wrong usage.\n\nExample: gmbench check main.parquet branch.parquet --peak +5%"
}

// growth is how much a size may grow: by a share of it, or by bytes.
type growth struct {
	share float64
	bytes int64
	text  string
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (g *growth) UnmarshalText(text []byte) error {
	*g = growth{text: "+" + strings.TrimPrefix(string(text), "+")}
	number, percent := strings.CutSuffix(g.text[1:], "%")
	var err error
	if percent {
		g.share, err = strconv.ParseFloat(number, 64)
		g.share /= 100
	} else {
		var size units.Bytes
		size, err = units.ParseBytes(number)
		g.bytes = int64(size)
		if _, small := units.ParseAmount(number); err == nil && small != nil {
			return fmt.Errorf("%s bytes? Write +%[1]s%% or +%[1]sMiB", number)
		}
	}
	if err != nil || !(g.share >= 0) || g.share > maxGrowth {
		return fmt.Errorf("%q is no growth such as +5%% or +512MiB", text)
	}
	return nil
}

// maxGrowth is the largest share that is taken for a growth: a thousandfold.
const maxGrowth = 1000

// most returns the most bytes that may come of some.
func (g *growth) most(bytes int64) int64 {
	return bytes + g.bytes + int64(math.Floor(g.share*float64(bytes)))
}

// checked is what is compared of a GPU.
type checked struct {
	Device int32  `json:"device"`
	What   string `json:"what"` // peak, reserved or a tag
	Before int64  `json:"before_bytes"`
	After  int64  `json:"after_bytes"`
	Most   int64  `json:"most_bytes"`
	OK     bool   `json:"ok"`

	Rank   *int64         `json:"rank,omitempty"`   // of a job; nil for single traces
	Failed *failedRequest `json:"failed,omitempty"` // what it is about in place of a growth; nil otherwise

	allowed string
}

// Run implements the command.
func (cmd *checkCmd) Run(c *cli.Context) error {
	all, err := cmd.check(c)
	return errors.Join(cli.Fault(err), tooMuch(all))
}

// check compares the traces and prints the result. There may be rows and an error.
func (cmd *checkCmd) check(c *cli.Context) ([]checked, error) {
	if err := cmd.valid(); err != nil {
		return nil, err
	}
	if ranks.IsFolder(cmd.Before) || ranks.IsFolder(cmd.After) {
		return cmd.ranks(c)
	}
	before, err := load(c, []string{cmd.Before})
	if err != nil {
		return nil, err
	}
	after, err := load(c, []string{cmd.After})
	if err != nil {
		return nil, err
	}
	all, err := cmd.compare(c, before, after)
	if err != nil {
		return nil, err
	}
	if len(cmd.Tag) > 0 {
		tags, err := cmd.compareTags(c)
		if err != nil {
			return nil, err
		}
		all = append(all, tags...)
	}
	return all, cmd.print(c, all)
}

// valid checks the command line and fills in what it leaves open.
func (cmd *checkCmd) valid() error {
	if cmd.Before == "-" && cmd.After == "-" {
		return cli.Usage("only one of the traces can be standard input")
	}
	if len(cmd.Tag) > 0 && (cmd.Before == "-" || cmd.After == "-") {
		return cli.Usage("--tag reads a trace twice: name a file in place of standard input")
	}
	if cmd.JSON && cmd.Markdown {
		return cli.Usage("give one of --json and --markdown")
	}
	cmd.tags = map[string]growth{}
	for tag, text := range cmd.Tag {
		var g growth
		if err := g.UnmarshalText([]byte(text)); err != nil {
			return cli.Usage("--tag %s=%s: %v", tag, text, err)
		}
		cmd.tags[tag] = g
	}
	if cmd.Peak == nil && cmd.Reserved == nil && len(cmd.Tag) == 0 {
		cmd.Peak = &growth{share: 0.05, text: "+5%"}
	}
	return cli.CheckFiles([]string{cmd.Before, cmd.After}, []string{cmd.JUnit})
}

// compare compares the programs of each GPU.
func (cmd *checkCmd) compare(c *cli.Context, before, after []*replay.Program) ([]checked, error) {
	if len(before) != len(after) {
		return nil, fmt.Errorf("%s is of %s, %s of %d", cmd.Before, units.Count(len(before), "GPU"), cmd.After, len(after))
	}
	byDevice := map[int32]*replay.Program{}
	for _, p := range before {
		byDevice[p.Device] = p
	}
	var all []checked
	add := func(device int32, what string, g *growth, a, b int64) {
		all = append(all, checked{Device: device, What: what, Before: a, After: b, Most: g.most(a), OK: b <= g.most(a), allowed: g.text})
	}
	for _, p := range after {
		old := byDevice[p.Device]
		if old == nil {
			return nil, fmt.Errorf("%s has no GPU %d, %s has", cmd.Before, p.Device, cmd.After)
		}
		if failed := cmd.died(c, old, p); failed != nil {
			all = append(all, *failed)
		}
		if cmd.Peak != nil {
			add(p.Device, "peak", cmd.Peak, old.PeakLive(), p.PeakLive())
		}
		if cmd.Reserved != nil {
			a, err := reserved(c, old)
			if err != nil {
				return nil, err
			}
			b, err := reserved(c, p)
			if err != nil {
				return nil, err
			}
			add(p.Device, "reserved", cmd.Reserved, a, b)
		}
	}
	return all, nil
}

// reserved returns what PyTorch's allocator reserves at most for a program, with the recorded settings.
func reserved(c *cli.Context, p *replay.Program) (int64, error) {
	name := "torch"
	if conf, _ := allocconf.Recorded(p.AllocConf); conf.Expandable {
		name = "expandable"
	}
	specs, err := bench.ParseSpecs(name)
	if err != nil {
		return 0, err
	}
	rows, err := bench.Compare(c.Context(), []*replay.Program{p}, specs, 0, func() {})
	if err != nil {
		return 0, err
	}
	return rows[0].PeakReserved, nil
}

// change returns by how much the size changed, as a share of it.
func (r *checked) change() string {
	if r.Before == 0 {
		return ""
	}
	return fmt.Sprintf("%+.2f%%", 100*float64(r.After-r.Before)/float64(r.Before))
}

// tooMuch returns an error for what grew by more than is allowed and for requests that failed, nil if there is neither.
func tooMuch(all []checked) error {
	var errs []error
	for _, r := range all {
		if !r.OK {
			errs = append(errs, errors.New(r.reason()))
		}
	}
	return errors.Join(errs...)
}

// reason says what grew by more than is allowed, or what failed.
func (r *checked) reason() string {
	what, ok := map[string]string{"peak": "the peak of live bytes", "reserved": "what PyTorch reserves"}[r.What]
	if !ok {
		what = "the peak of what is tagged " + r.What
	}
	where := fmt.Sprintf("device %d", r.Device)
	if r.Rank != nil {
		where = ranks.Name(*r.Rank) + ", " + where
	}
	if r.Failed != nil {
		return where + ": " + r.Failed.String()
	}
	return fmt.Sprintf("%s: %s grew from %s to %s (%s), and %s is allowed: at most %s",
		where, what, units.Bytes(r.Before), units.Bytes(r.After), r.change(), r.allowed, units.Bytes(r.Most))
}
