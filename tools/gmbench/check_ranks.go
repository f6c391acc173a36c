package main

import (
	"errors"
	"fmt"
	"slices"

	"gm/formats/column"
	"gm/formats/trace"
	"gm/internal/bench/replay"
	"gm/internal/cli"
	"gm/internal/trace/ranks"
)

// ranks checks each rank of a job, one after the other.
func (cmd *checkCmd) ranks(c *cli.Context) ([]checked, error) {
	switch {
	case !ranks.IsFolder(cmd.Before) || !ranks.IsFolder(cmd.After):
		return nil, cli.Usage("%s and %s: one is the folder of a job, so both must be", cmd.Before, cmd.After)
	case len(cmd.Tag) > 0:
		return nil, cli.Usage("--tag is for single traces: name the traces of one rank")
	}
	before, err := ranks.Open(cmd.Before)
	if err != nil {
		return nil, err
	}
	after, err := ranks.Open(cmd.After)
	if err != nil {
		return nil, err
	}
	all, alone, err := cmd.eachRank(c, before, after)
	if err != nil {
		return nil, err
	}
	for _, j := range []*ranks.Job{before, after} {
		for _, problem := range j.Problems() {
			c.Warn("%s: %s", j.Folder, problem)
		}
	}
	incomplete := errors.Join(before.Incomplete(), after.Incomplete(), ranks.Unpaired(alone))
	if len(all) == 0 {
		return nil, errors.Join(fmt.Errorf("%s and %s have no rank in common that can be compared", cmd.Before, cmd.After), incomplete)
	}
	return all, errors.Join(cmd.print(c, all), incomplete)
}

// eachRank compares the ranks that both jobs have, and returns those that only one has. A rank of which only one trace can be read is left out of
// the job that has the other.
func (cmd *checkCmd) eachRank(c *cli.Context, before, after *ranks.Job) (all []checked, alone []int64, err error) {
	old := map[string]*ranks.Member{}
	for _, m := range before.Members {
		old[m.Key()] = m
	}
	byRank := make([][]checked, len(after.Members))
	progress := c.Progress("check ranks", int64(len(after.Members)))
	defer progress.End()
	err = after.Each(c.Context(), 1, func() { progress.Add(1) }, func(m *ranks.Member, source *column.Source) error {
		was := old[m.Key()]
		if was == nil {
			alone = append(alone, m.Rank)
			return nil
		}
		delete(old, m.Key())
		now, err := trace.ReadSource(source, replay.Load)
		if err != nil {
			return err
		}
		then, err := load(c, []string{was.Path()})
		if err != nil {
			before.Leave(was, err)
			return nil
		}
		rows, err := cmd.compare(c, then, now)
		for i := range rows {
			rows[i].Rank = &m.Rank
		}
		byRank[m.Index] = rows
		return err
	})
	for _, m := range old {
		alone = append(alone, m.Rank)
	}
	return slices.Concat(byRank...), alone, err
}
