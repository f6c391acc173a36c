package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"gm/internal/cli"
	"gm/internal/trace/ranks"
	"gm/internal/trace/text"
)

// ranks compares the ranks of two jobs.
func (cmd *diffCmd) ranks(c *cli.Context) error {
	if cmd.B == "" {
		return cli.Usage("name a second folder, that of the job to compare %s with", cmd.A)
	}
	if !ranks.IsFolder(cmd.A) || !ranks.IsFolder(cmd.B) {
		return cli.Usage("%s and %s: one is the folder of a job, so both must be", cmd.A, cmd.B)
	}
	a, before, err := readRanks(c, cmd.A)
	if err != nil {
		return err
	}
	b, after, err := readRanks(c, cmd.B)
	if err != nil {
		return err
	}
	both, alone := ranks.Pairs(before, after)
	if len(both) == 0 {
		return fmt.Errorf("%s and %s have no rank in common", cmd.A, cmd.B)
	}
	if cmd.JSON {
		err = cli.WriteJSON(c.Out, both)
	} else {
		var out strings.Builder
		if err = text.RankPairs(&out, both); err == nil {
			_, err = io.WriteString(c.Out, out.String())
		}
	}
	return errors.Join(err, a.Incomplete(), b.Incomplete(), ranks.Unpaired(alone))
}
