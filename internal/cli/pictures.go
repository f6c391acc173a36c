package cli

import (
	"io"
	"slices"
)

// Pictures holds the flags of a command that draws. Embed it in the command with a tag set:"picture=...", the help of --png.
type Pictures struct {
	PNG string `name:"png" placeholder:"FILE" help:"${picture}"`
	SVG string `name:"svg" placeholder:"FILE" help:"The same as SVG."`
}

// Any reports whether a picture was requested.
func (p *Pictures) Any() bool { return len(p.Asked()) > 0 }

// Check returns an error if a picture's file is also an input of the command, is named for both pictures, or cannot be written.
func (p *Pictures) Check(inputs ...string) error {
	if p.PNG != "" && p.PNG == p.SVG {
		return Usage("--png and --svg are both %s", p.PNG)
	}
	return CheckFiles(inputs, p.Asked())
}

// Asked returns the names of the requested files.
func (p *Pictures) Asked() []string {
	return slices.DeleteFunc([]string{p.PNG, p.SVG}, func(path string) bool { return path == "" })
}

// Write draws the requested pictures into files made by create, which is [Context.File] or [Context.Binary].
func (p *Pictures) Write(create func(path string, write func(io.Writer) error) error, png, svg func(io.Writer) error) error {
	if p.PNG != "" {
		if err := create(p.PNG, png); err != nil {
			return err
		}
	}
	if p.SVG != "" {
		return create(p.SVG, svg)
	}
	return nil
}
