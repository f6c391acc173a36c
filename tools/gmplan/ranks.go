package main

import (
	"gm/internal/cli"
	"gm/internal/trace/ranks"
)

// chooseRank replaces the folder of a job by the trace to plan: that of the first rank of the most that are alike. It says which ranks the
// plan fits, and which it does not.
func (cmd *layoutCmd) chooseRank(c *cli.Context) (*ranks.Job, error) {
	j, err := ranks.Open(cmd.File)
	if err != nil {
		return nil, err
	}
	progress := c.Progress("read ranks", int64(len(j.Members)))
	t, err := j.Read(c.Context(), func() { progress.Add(1) })
	progress.End()
	if err != nil {
		return nil, err
	}
	for _, problem := range j.Problems() {
		c.Warn("%s: %s", j.Folder, problem)
	}
	groups := t.Groups()
	cmd.File = groups[0].File
	if len(groups[0].Ranks) > 1 {
		c.Note("one plan for %s, whose requests are the same: that of %s", ranks.Names(groups[0].Ranks), cmd.File)
	}
	for _, g := range groups[1:] {
		c.Warn("the plan does not fit %s, whose requests differ: gmplan %s makes one that does", ranks.Names(g.Ranks), g.File)
	}
	return j, nil
}
