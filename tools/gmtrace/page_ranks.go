package main

import (
	"errors"
	"io"
	"path/filepath"
	"strings"

	"gm/internal/cli"
	"gm/internal/trace/page"
	"gm/internal/trace/text"
)

// ranks writes a page about the ranks of a job.
func (cmd *pageCmd) ranks(c *cli.Context) error {
	if len(cmd.Files) != 1 || len(cmd.With) > 0 {
		return cli.Usage("the page of a job's ranks is of one folder alone")
	}
	j, t, err := readRanks(c, cmd.Files[0])
	if err != nil {
		return err
	}
	var facts strings.Builder
	text.RankFacts(&facts, t)
	p := page.Ranks{
		Title: "GPU memory by rank: " + filepath.Base(j.Folder), Version: cli.Version(), Table: t,
		Facts: append(strings.Split(strings.TrimSpace(facts.String()), "\n"), j.Problems()...),
	}
	p.Rows, p.Of = text.RankTable(t)
	var all []*page.Recording
	files, whole := t.Files()
	for _, file := range files {
		r, err := readRecording(c, file)
		if err != nil { // it has curves all the same
			c.Warn("tensors are not shown: %v", err)
			whole = false
			continue
		}
		all = append(all, r)
	}
	if len(all) > 0 {
		page.TellApart(all...)
		p.Tensors, p.All = page.Join(all), whole
	}
	return errors.Join(c.Page(cmd.Output, func(w io.Writer) error { return p.Write(w) }), j.Incomplete())
}
