// Package cli holds what gm's command lines share: parsing, messages, exit statuses, and output files.
package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"unicode"

	"github.com/alecthomas/kong"
)

// The exit statuses of every tool.
const (
	statusDone   = 0
	statusFailed = 1
	statusUsage  = 2
	statusFault  = 2 // of a command whose answer may be statusFailed

	statusSignalled = 128 // plus the number of the signal
)

// Tool describes a command line.
type Tool struct {
	Name    string
	Help    string // its purpose, and an example
	Grammar any    // a kong struct whose commands have a method Run(*Context) error
}

// common holds the flags of every tool.
type common struct {
	Version kong.VersionFlag `help:"Print the version."`
}

// Context is the environment of a command: its streams, its outputs, and the end by an interrupt.
type Context struct {
	Tool string
	Out  io.Writer
	Err  io.Writer

	outputs   outputs
	interrupt *interrupt
	stop      func() // ends the watch for interrupts
}

// Main parses args, runs the command that they name, and returns the exit status: 0 done, 1 failed, 2 wrong usage, 128 plus the number of
// the signal that interrupted it.
func (t Tool) Main(args []string) int {
	c := &Context{Tool: t.Name, Out: os.Stdout, Err: os.Stderr}
	c.interrupt = newInterrupt()
	c.stop = c.watchInterrupts()
	defer func() { c.stop() }()
	exited := false
	info := buildInfo()
	var lists lists
	parser, err := kong.New(t.Grammar, kong.Name(t.Name), kong.UsageOnError(), kong.Embed(&common{}),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}), kong.Help(lists.print),
		kong.KindMapper(reflect.String, kong.MapperFunc(textAsItIs)),
		kong.Vars{"version": t.Name + " " + version(info)},
		kong.Exit(func(int) { exited = true }))
	if err != nil {
		panic("BUG: command line of " + t.Name + ": " + err.Error())
	}
	switch {
	case len(args) == 1 && args[0] == completionCommand:
		return c.status(Usage("completion for which shell: expected %s", strings.Join(shells[:], ", ")))
	case len(args) == 2 && args[0] == completionCommand:
		return c.status(complete(c.Out, args[1], parser.Model))
	case len(args) == 1 && args[0] == manCommand:
		return c.status(printManual(c.Out, parser.Model, t.Help+sizesOf(parser.Model.Children...), info))
	}
	t.describe(parser.Model, &lists)
	if err := typo(args, parser.Model); err != nil {
		return c.status(&UsageError{err.Error()})
	}
	parsed, err := parser.Parse(args)
	switch {
	case exited: // --help or --version was printed
		return statusDone
	case err != nil:
		c.Fail(mend(err, parser.Model))
		fmt.Fprintf(c.Err, "%s: hint: see %s --help\n", t.Name, strings.Join(append([]string{t.Name}, commandOf(err)...), " "))
		return statusUsage
	}
	err = parsed.Run(c)
	c.outputs.removeAll()
	if signal := c.interrupt.signal.Load(); signal != 0 {
		return statusSignalled + int(signal)
	}
	return c.status(err)
}

// describe completes the help texts, and takes the lists out of them.
func (t *Tool) describe(model *kong.Application, lists *lists) {
	model.Help, lists.tool = cutLists(t.Help)
	model.Help += fmt.Sprintf("%s\n\nShell completion: source <(%[2]s %[3]s bash), or zsh; %[2]s %[3]s fish | source. Manual page: %[2]s %[4]s | man -l -. "+
		"Documents: share/doc/gm/docs, where gm is installed.", sizesOf(model.Children...), t.Name, completionCommand, manCommand)
	lists.cut(model)
	for _, node := range model.Children {
		node.Detail += sizesOf(node)
	}
}

// sizesOf says how sizes are written, if one of the commands has a flag with a size.
func sizesOf(nodes ...*kong.Node) string {
	for _, node := range nodes {
		if slices.ContainsFunc(node.Flags, func(flag *kong.Flag) bool { return strings.Contains(flag.PlaceHolder, "SIZE") }) {
			return "\n\nSizes: 40GiB, 40Gi and 40G are 40 * 2^30 bytes, 40GB are 40 * 10^9; the same for K, M and T."
		}
	}
	return ""
}

// textAsItIs maps a word of the command line to a string without a change. Kong's own mapper forces it to be UTF-8, which names of files
// need not be.
func textAsItIs(ctx *kong.DecodeContext, target reflect.Value) error {
	word, err := ctx.Scan.PopValue("string")
	if err != nil {
		return err
	}
	target.SetString(word.String())
	return nil
}

// status prints an error and returns its exit status.
func (c *Context) status(err error) int {
	var usage *UsageError
	var fault *faultError
	var status Status
	switch {
	case err == nil:
		return statusDone
	case errors.As(err, &status):
		return int(status)
	case errors.As(err, &usage):
		c.Fail(err)
		return statusUsage
	case errors.As(err, &fault):
		if !errors.Is(err, syscall.EPIPE) {
			c.Fail(err)
		}
		return statusFault
	case errors.Is(err, syscall.EPIPE):
		return statusFailed
	}
	c.Fail(err)
	return statusFailed
}

// commandOf returns the command in which a parse error occurred, as words.
func commandOf(err error) []string {
	var parse *kong.ParseError
	if errors.As(err, &parse) && parse.Context != nil {
		if node := parse.Context.Selected(); node != nil {
			return []string{node.Name}
		}
	}
	return nil
}

// Fail prints an error on one line.
func (c *Context) Fail(err error) {
	fmt.Fprintf(c.Err, "%s: %s\n", c.Tool, line(strings.ReplaceAll(err.Error(), "\n", "; ")))
}

// Warn prints a warning.
func (c *Context) Warn(format string, args ...any) {
	fmt.Fprintf(c.Err, "%s: warning: %s\n", c.Tool, line(fmt.Sprintf(format, args...)))
}

// Note prints what was done, for people; scripts can ignore it.
func (c *Context) Note(format string, args ...any) {
	fmt.Fprintf(c.Err, "%s: %s\n", c.Tool, line(fmt.Sprintf(format, args...)))
}

// line replaces unprintable characters, such as terminal control sequences: text may contain names read from files.
func line(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) || r == '\n' || r == '\t' {
			return r
		}
		return '?'
	}, text)
}

// Status is the exit status of another program, which a command passes on without a message.
type Status int

// Error implements error.
func (s Status) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// faultError is an error of a command whose exit status 1 is an answer.
type faultError struct{ error }

// Unwrap returns the error.
func (f *faultError) Unwrap() error { return f.error }

// Fault returns the error of a command that answers by its exit status, as diff and grep do, and could not find out: the status is 2. It is nil
// for nil.
func Fault(err error) error {
	if err == nil {
		return nil
	}
	return &faultError{err}
}

// UsageError is wrong usage that the parser cannot detect.
type UsageError struct{ text string }

// Usage returns a UsageError.
func Usage(format string, args ...any) error { return &UsageError{fmt.Sprintf(format, args...)} }

// Error implements error.
func (e *UsageError) Error() string { return e.text }
