package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"gm/internal/bench/replay"
	"gm/internal/cli"
	"gm/internal/report"
	"gm/internal/torch/allocconf"
	"gm/internal/trace/input"
	"gm/internal/units"
)

type verifyCmd struct {
	Files []string    `arg:"" optional:"" name:"trace" help:"Traces of PyTorch's allocator with its segment events, or its snapshots. Standard input if there is none, or for '-'."`
	Limit units.Bytes `placeholder:"SIZE" help:"Memory that the process was allowed to reserve on each GPU. garbage_collection_threshold is a share of it."`
	JSON  bool        `name:"json" help:"Print JSON."`
}

type verdict struct {
	Trace string `json:"trace"`
	replay.Verdict
}

// Help implements kong.HelpProvider.
func (cmd *verifyCmd) Help() string { return "Example: gmbench verify job.parquet" }

// Run implements the command.
func (cmd *verifyCmd) Run(c *cli.Context) error {
	files := cmd.Files
	if len(files) == 0 {
		files = []string{"-"}
	}
	if err := cli.CheckFiles(files, nil); err != nil {
		return err
	}
	var all []verdict
	var failed error
	for _, file := range files {
		verdicts, err := cmd.verify(c, file)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		all = append(all, verdicts...)
	}
	if len(all) > 0 {
		failed = errors.Join(failed, cmd.print(c, all))
	}
	if failed != nil {
		return failed
	}
	for _, v := range all {
		if v.Divergence != nil {
			return fmt.Errorf("%s: device %d: %w", v.Trace, v.Device, v.Divergence)
		}
	}
	return nil
}

func (cmd *verifyCmd) verify(c *cli.Context, file string) (all []verdict, err error) {
	r, err := input.OpenTrace(c, file)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	conf, unknown := allocconf.Recorded(r.Meta().AllocConf)
	if len(unknown) > 0 {
		c.Warn("%s: recorded with settings that are not known: %s", r.Name(), strings.Join(unknown, ", "))
	}
	if cmd.Limit == 0 && conf.NeedsLimit() {
		c.Warn("%s: recorded with settings that are shares of --limit, which was not given: %s", r.Name(), r.Meta().AllocConf)
	}
	verdicts, err := replay.Verify(r.Reader, int64(cmd.Limit))
	for _, v := range verdicts {
		all = append(all, verdict{r.Name(), v})
	}
	return all, err
}

func (cmd *verifyCmd) print(c *cli.Context, all []verdict) error {
	if cmd.JSON {
		return cli.WriteJSON(c.Out, all)
	}
	t := report.Table{Titles: []string{"trace", "device", "blocks", "segment rows", "peak recorded", "peak replayed", "result"}}
	for _, v := range all {
		result := "identical"
		if v.Divergence != nil {
			result = fmt.Sprintf("differs at row %d", v.Divergence.Row)
		}
		t.Add(v.Trace, strconv.Itoa(int(v.Device)), strconv.FormatInt(v.Allocs, 10), strconv.FormatInt(v.Segments, 10),
			strconv.FormatInt(v.PeakRecorded, 10), strconv.FormatInt(v.PeakReplayed, 10), result)
	}
	return t.Write(c.Out)
}
