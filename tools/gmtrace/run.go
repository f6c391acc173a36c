package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"gm/internal/capture"
	"gm/internal/cli"
	"gm/internal/cli/command"
	"gm/internal/report"
	"gm/internal/units"
)

type runCmd struct {
	Command []string `arg:"" optional:"" passthrough:"" name:"command" help:"The program to run, and its arguments."`
	Output  string   `short:"o" placeholder:"FILE" help:"Write the trace to this file; in its name %r is the rank, %l the local rank, %w the world size, %p the pid and %h the host. Or to this folder, with a file in host=H/rank=R/pid=P/ for each process. Standard output by default; the program's output then goes to standard error."`
	Stacks  string   `enum:"none,python,native,both" default:"none" help:"Record stacks: the Python stack of each tensor, the native stack of each call to the driver, or both. (${enum})"`
	OnlyOOM bool     `name:"only-oom" help:"Write a trace only if the program runs out of GPU memory: of the events before that. The overhead is negligible."`
	Steps   string   `placeholder:"FROM:TO" help:"Record only some iterations: 3:6 are 3, 4 and 5, counted from 0."`
	Mode    string   `enum:"preload,audit" default:"preload" help:"How to intercept calls of the driver: preload, or audit for programs that load CUDA in ways that preloading does not reach (RTLD_DEEPBIND). (${enum})"`
	Marks   string   `placeholder:"MODULE:FUNCTION" help:"The function whose return ends an iteration, such as trainer:Trainer.step. The step of any PyTorch optimizer by default."`
	Attach  string   `hidden:"" placeholder:"PID" help:"Not possible."`
}

// Help implements kong.HelpProvider.
func (cmd *runCmd) Help() string {
	return "Example: gmtrace run -o job.parquet -- python train.py\n\n" +
		"Each process that uses CUDA has its own trace. The exit status is that of the program."
}

// Run implements the command.
func (cmd *runCmd) Run(c *cli.Context) error {
	if cmd.Attach != "" {
		return cli.Usage("--attach: what runs already cannot be recorded, since a library loaded midway may hang it and misses calls; in it, call " +
			"torch.cuda.memory._record_memory_history() and later _dump_snapshot(FILE), which all commands read; gmtrace top shows what it holds")
	}
	words, err := command.Words(c.Tool+" run", cmd.Command)
	if err != nil {
		return err
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
	if err := capture.CheckOutput(cmd.Output); err != nil {
		return err
	}
	session, err := newSession(options)
	if err != nil {
		return err
	}
	defer command.KeepFromPipe()()
	status, err := cmd.record(c, session, words, stdout)
	if err = conclude(c, session, err); err != nil && status != 0 { // the command's own failure is the one to pass on
		c.Fail(err)
	} else if err != nil {
		return err
	}
	return cli.Status(status)
}

// conclude closes a session after err, which may be nil, and reports where its recordings are kept if they were not written.
func conclude(c *cli.Context, s *capture.Session, err error) error {
	if err != nil && !errors.Is(err, unix.EPIPE) {
		s.Keep()
	}
	kept := s.Kept()
	if err = errors.Join(err, s.Failed(), s.Close()); kept != "" {
		c.Note("the recording is kept for a day: gmtrace recover -o FILE %s", kept)
	}
	return err
}

// newSession starts a session with the preload library.
func newSession(options capture.Options) (*capture.Session, error) {
	var err error
	if options.Library, err = capture.Preload(); err != nil {
		return nil, err
	}
	s, err := capture.NewSession(options)
	if err != nil {
		return nil, fmt.Errorf("prepare the capture: %w; TMPDIR can name another folder than %s", err, command.TempDir())
	}
	return s, nil
}

// options checks the flags.
func (cmd *runCmd) options(c *cli.Context) (capture.Options, error) {
	o := capture.Options{
		Audit:        cmd.Mode == "audit",
		PythonStacks: cmd.Stacks == "python" || cmd.Stacks == "both",
		NativeStacks: cmd.Stacks == "native" || cmd.Stacks == "both",
		Marks:        cmd.Marks,
		OnlyOOM:      cmd.OnlyOOM,
		Output:       fromRoot(cmd.Output),
		Warn:         c.Warn,
	}
	if module, function, ok := strings.Cut(cmd.Marks, ":"); cmd.Marks != "" && (!ok || module == "" || function == "") {
		return o, fmt.Errorf("marks %q are not MODULE:FUNCTION, such as trainer:Trainer.step", cmd.Marks)
	}
	if strings.HasPrefix(cmd.Marks, "__main__:") {
		return o, fmt.Errorf("marks %q: a function of the script itself cannot be named, only one of a module that it imports", cmd.Marks)
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

// fromRoot returns the absolute path of an output; "" for standard output. It keeps a slash at the end.
func fromRoot(output string) string {
	if output == "" || output == "-" {
		return ""
	}
	whole, err := filepath.Abs(output)
	if err != nil {
		return output
	}
	if strings.HasSuffix(output, "/") {
		whole += "/"
	}
	return whole
}

func (cmd *runCmd) record(c *cli.Context, s *capture.Session, words []string, stdout io.Writer) (status int, err error) {
	release := c.OwnSignals()
	status, err = s.Run(words, stdout)
	release()
	if failed := (*command.StartError)(nil); errors.As(err, &failed) {
		c.Fail(failed)
		return failed.Status(), nil
	} else if err != nil {
		return 0, err
	}
	outputs, err := s.Outputs(cmd.Output)
	if err != nil {
		return status, err
	}
	switch {
	case cmd.OnlyOOM && status == 0:
		return status, nil
	case cmd.OnlyOOM && len(outputs) == 0:
		c.Note("no process ran out of GPU memory: there is no trace")
	case len(outputs) == 0:
		c.Warn("%s", noTrace)
	}
	if s.Interrupted() && brokenPipe(os.Stdout) {
		save(outputs)
	}
	return status, writeAll(c, outputs)
}

// save redirects a trace from a pipe, whose reader Ctrl-C has ended as well, to a file.
func save(outputs []capture.Output) {
	for i := range outputs {
		if o := &outputs[i]; o.Name == "" {
			o.Name = fmt.Sprintf("gmtrace-p%d.parquet", o.PID)
		}
	}
}

// brokenPipe reports whether a file is a pipe without a reader.
func brokenPipe(f *os.File) bool {
	fds := []unix.PollFd{{Fd: int32(f.Fd())}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n == 1 && fds[0].Revents&unix.POLLERR != 0
}

// noTrace is the message if there is no trace. The program may have used CUDA all the same, without loading the preload library.
const noTrace = "no process was seen to use CUDA: there is no trace"

// writeAll writes all traces. It goes on after one that cannot be written.
func writeAll(c *cli.Context, outputs []capture.Output) error {
	var errs []error
	for i := range outputs {
		errs = append(errs, write(c, &outputs[i]))
	}
	return errors.Join(errs...)
}

// write writes the trace of one process and reports where it is.
func write(c *cli.Context, o *capture.Output) error {
	if folder := filepath.Dir(o.Name); o.Name != "" {
		if err := os.MkdirAll(folder, 0o777); err != nil {
			return err
		}
	}
	return c.Binary(o.Name, func(w io.Writer) error {
		rows, err := o.Write(w)
		if err == nil && o.Name != "" {
			c.Note("%s: %s of process %d%s", o.Name, units.Count(rows, "row"), o.PID, of(o.Command))
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
	return fmt.Sprintf(" (%s)", report.Printable(command))
}
