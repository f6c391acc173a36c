package main

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"gm/internal/capture"
	"gm/internal/cli"
)

type runCmd struct {
	Command []string `arg:"" passthrough:"" name:"command" help:"The program to run, and its arguments."`
	Output  string   `short:"o" placeholder:"FILE" help:"Where the trace goes: a file, in whose name %r is the rank, %l the local rank, %w the world size, %p the pid and %h the host; or a folder, for a file in host=H/rank=R/pid=P/ of each process. Standard output by default; what the program prints then goes to standard error."`
	Stacks  string   `enum:"none,python,native,both" default:"none" help:"Record who asked: the Python stack of each tensor, the native stack of each call to the driver, or both. (${enum})"`
	OnlyOOM bool     `name:"only-oom" help:"Write a trace only if the program dies of a lack of GPU memory, of what came before. Costs next to nothing."`
	Steps   string   `placeholder:"FROM:TO" help:"Record some iterations only: 3:6 are 3, 4 and 5, counted from 0."`
	Mode    string   `enum:"preload,audit" default:"preload" help:"How calls of the driver are seen: preload, or audit, for programs that load CUDA in ways that preloading does not reach (RTLD_DEEPBIND). (${enum})"`
	Marks   string   `placeholder:"MODULE:FUNCTION" help:"What ends an iteration when it returns, such as trainer:Trainer.step. The step of any PyTorch optimizer by default."`
}

// preload holds the library that traced programs load, if it was built.
//
//go:embed preload
var preload embed.FS

// Help implements kong.HelpProvider.
func (cmd *runCmd) Help() string {
	return "Example: gmtrace run -o job.parquet -- python train.py\n\n" +
		"Each process that uses CUDA has a trace of its own. The program's exit status is passed through."
}

// Run implements the command.
func (cmd *runCmd) Run(c *cli.Context) error {
	words := cmd.Command
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	if len(words) == 0 {
		return cli.Usage("no command to run: gmtrace run -- COMMAND")
	}
	options, err := cmd.options(c)
	if err != nil {
		return cli.Usage("%v", err)
	}
	stdout := io.Writer(os.Stdout)
	if cmd.Output == "" || cmd.Output == "-" {
		if err := c.CheckBinary(); err != nil {
			return err
		}
		stdout = os.Stderr
	}
	if options.Library, err = preload.ReadFile("preload/libgmtrace.so"); err != nil {
		return errors.New("this gmtrace was built without its preload library: build it with make")
	}
	session, err := capture.NewSession(options)
	if err != nil {
		return err
	}
	status, err := cmd.record(c, session, words, stdout)
	if err = errors.Join(err, session.Close()); err != nil {
		return err
	}
	return cli.Status(status)
}

// options checks the flags.
func (cmd *runCmd) options(c *cli.Context) (capture.Options, error) {
	o := capture.Options{
		Audit:        cmd.Mode == "audit",
		PythonStacks: cmd.Stacks == "python" || cmd.Stacks == "both",
		NativeStacks: cmd.Stacks == "native" || cmd.Stacks == "both",
		Marks:        cmd.Marks,
		OnlyOOM:      cmd.OnlyOOM,
		Warn:         c.Warn,
	}
	if module, function, ok := strings.Cut(cmd.Marks, ":"); cmd.Marks != "" && (!ok || module == "" || function == "") {
		return o, fmt.Errorf("marks %q are not MODULE:FUNCTION, such as trainer:Trainer.step", cmd.Marks)
	}
	if cmd.Steps != "" {
		steps, err := capture.ParseSteps(cmd.Steps)
		if err != nil {
			return o, err
		}
		o.Steps = steps
	}
	return o, capture.CheckPattern(cmd.Output)
}

func (cmd *runCmd) record(c *cli.Context, s *capture.Session, words []string, stdout io.Writer) (status int, err error) {
	release := c.OwnSignals()
	status, err = s.Run(words, stdout)
	release()
	var notFound *exec.Error
	if errors.As(err, &notFound) {
		c.Warn("%v", err)
		return 127, nil
	} else if err != nil {
		return 0, err
	}
	outputs, err := s.Outputs(cmd.Output)
	if err != nil {
		return 0, err
	}
	switch {
	case cmd.OnlyOOM && status == 0:
		return status, nil
	case cmd.OnlyOOM && len(outputs) == 0:
		c.Note("no process ran out of GPU memory: there is no trace")
	case len(outputs) == 0:
		c.Warn("no process used CUDA: there is no trace")
	}
	for i := range outputs {
		if err := write(c, &outputs[i]); err != nil {
			return 0, err
		}
	}
	return status, nil
}

// write writes the trace of one process, and says where it is.
func write(c *cli.Context, o *capture.Output) error {
	if folder := filepath.Dir(o.Name); o.Name != "" {
		if err := os.MkdirAll(folder, 0o777); err != nil {
			return err
		}
	}
	return c.Binary(o.Name, func(w io.Writer) error {
		rows, err := o.Write(w)
		if err == nil && o.Name != "" {
			c.Note("%s: %d rows of process %d%s", o.Name, rows, o.PID, of(o.Command))
		}
		return err
	})
}

func of(command string) string {
	const limit = 60
	if command == "" {
		return ""
	}
	if len(command) > limit {
		command = strings.ToValidUTF8(command[:limit], "") + "..."
	}
	return fmt.Sprintf(" (%s)", command)
}
