package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"gm/formats/column"
	"gm/formats/trace"
	"gm/internal/cli"
	"gm/internal/trace/overview"
	"gm/internal/trace/tags"
	"gm/internal/trace/text"
)

// topFlag is an optional number.
type topFlag int

// defaultTop is the number if it is left out.
const defaultTop = 10

// Decode implements kong.MapperValue. The next word is taken only if it is a number.
func (f *topFlag) Decode(ctx *kong.DecodeContext) error {
	*f = defaultTop
	token := ctx.Scan.Peek()
	n, err := strconv.Atoi(token.String())
	switch {
	case err == nil && n > 0:
		*f = topFlag(n)
	case token.Type == kong.FlagValueToken || err == nil && token.IsValue():
		return fmt.Errorf("%q is not a number from 1", token)
	default:
		return nil
	}
	ctx.Scan.Pop()
	return nil
}

// top prints what is live at the moments of most interest.
func (cmd *showCmd) top(c *cli.Context, source *column.Source, o *overview.Overview) error {
	if cmd.Top == 0 {
		cmd.Top = defaultTop
	}
	at, err := cmd.At.row(source, o)
	if err != nil {
		return err
	}
	labels, err := trace.ReadSource(source, tags.Derive)
	if err != nil {
		return err
	}
	all, err := trace.ReadSource(source, func(r *trace.Reader) ([]*overview.Top, error) {
		return overview.ReadTop(r, o, overview.Look{Groups: int(cmd.Top), Tags: labels, At: at})
	})
	if err != nil {
		return err
	}
	if cmd.JSON {
		return cli.WriteJSON(c.Out, all)
	}
	var out strings.Builder
	if err := text.Moments(&out, o, all); err != nil {
		return err
	}
	_, err = io.WriteString(c.Out, out.String())
	return err
}
