package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"gm/internal/cli"
	"gm/internal/cli/command"
	"gm/internal/libgm/library"
	"gm/internal/libgm/planner"
	"gm/internal/torch/gmstitch"
	"gm/internal/units"
)

type runCmd struct {
	Command []string    `arg:"" optional:"" passthrough:"" name:"command" help:"The program to run, and its arguments."`
	Plan    string      `placeholder:"FILE" xor:"plan" help:"A plan of gmplan: requests that come in its order get its addresses."`
	Auto    bool        `xor:"plan" help:"Record the first iterations, plan them meanwhile, and go on with that plan."`
	Limit   units.Bytes `placeholder:"SIZE" help:"Take at most so much memory from each device, in each process."`
	Stats   string      `placeholder:"FILE" help:"Leave an account of each process at its end, in whose name %p is the pid; a trace, if it ends in .parquet."`
	Log     string      `placeholder:"FILE" help:"Where the allocator writes what it has to say. Standard error by default."`
	Summary bool        `help:"Print the peaks of each process and device at the end."`
	Preload bool        `help:"Serve the cudaMalloc of any program that is linked with the shared CUDA runtime, not just PyTorch's tensors."`
	CuPy    bool        `name:"cupy" help:"Serve CuPy's default memory pool, too: in less memory, at some cost of time."`
	Library string      `placeholder:"FILE" help:"A libgm.so to use in place of the one inside of gmstitch."`

	library.Served
}

const summaryTick = 100 * time.Millisecond

// Help implements kong.HelpProvider.
func (cmd *runCmd) Help() string {
	return "Example: gmstitch run -- python train.py\n\n" +
		"The program is not changed. Where the allocator cannot be used, PyTorch's own is, and a line says why. " +
		"The program's exit status is passed through."
}

// Run implements the command.
func (cmd *runCmd) Run(c *cli.Context) error {
	words, err := command.Words(c.Tool+" run", cmd.Command)
	if err != nil {
		return err
	}
	if cmd.Name != "" && !cmd.Server {
		return cli.Usage("--name is for the memory server: add --server")
	}
	if err := cmd.check(); err != nil {
		return err
	}
	folder, err := command.MakeFolder(command.TempDir(), "gmstitch-", nil)
	if err != nil {
		return fmt.Errorf("prepare the run: %w; TMPDIR can name another folder than %s", err, command.TempDir())
	}
	status, err := cmd.runIn(c, folder.Path, words)
	if failed := folder.Remove(); failed != nil {
		c.Warn("%v", failed)
	}
	if err != nil {
		return err
	}
	return cli.Status(status)
}

// check looks at the files before the program starts, and makes their names those of any folder that it may go to.
func (cmd *runCmd) check() error {
	for _, name := range []*string{&cmd.Plan, &cmd.Library, &cmd.Stats, &cmd.Log} {
		if *name == "" {
			continue
		}
		path, err := filepath.Abs(*name)
		if err != nil {
			return err
		}
		*name = path
	}
	for _, in := range []struct{ flag, name string }{{"--plan", cmd.Plan}, {"--library", cmd.Library}} {
		if err := cli.ForPrograms(in.flag, in.name); err != nil {
			return err
		}
		if err := readable(in.name); err != nil {
			return err
		}
	}
	outputs := []string{cmd.Stats}
	if _, err := os.Stat(cmd.Log); err != nil { // what is there is added to
		outputs = append(outputs, cmd.Log)
	}
	return cli.CheckFiles([]string{cmd.Plan, cmd.Library}, outputs)
}

// readable opens a file, if there is one.
func readable(name string) error {
	if name == "" {
		return nil
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return f.Close()
}

// runIn runs the command with a folder for what it loads.
func (cmd *runCmd) runIn(c *cli.Context, folder string, words []string) (status int, err error) {
	if err := cmd.install(folder); err != nil {
		return 0, err
	}
	child := exec.Command(words[0], words[1:]...)
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
	e := cmd.environ(os.Environ(), folder)
	if plans, err := planner.Listen(folder, c.Tool); err != nil {
		c.Warn("no plans are made: %v", err)
	} else {
		defer plans.Close()
		e.Set("GM_PLANNER", plans.Path)
	}
	if warning, err := cmd.Install(folder, &e); err != nil {
		return 0, err
	} else if warning != "" {
		c.Warn("%s", warning)
	}
	child.Env = e
	defer c.OwnSignals()()
	defer command.KeepFromPipe()()
	seen := newSummary(folder)
	poll := seen.look
	if !cmd.Summary {
		poll = nil
	}
	result, err := command.Run(child, summaryTick, poll)
	if failed := (*command.StartError)(nil); errors.As(err, &failed) {
		c.Fail(failed)
		return failed.Status(), nil
	} else if err != nil {
		return 0, err
	}
	if _, err := os.Stat(filepath.Join(folder, gmstitch.Mark)); err != nil {
		c.Warn("%s: nothing ran on the allocator%s", cmd.unseen(), cmd.unbounded())
	} else if cmd.Summary {
		seen.tell(c)
	}
	return result.Status, nil
}

// unseen says what no process of the program was seen to do.
func (cmd *runCmd) unseen() string {
	by := "PyTorch"
	if cmd.CuPy {
		by += " or CuPy"
	}
	if cmd.Preload {
		by += ", or to call cudaMalloc of a shared CUDA runtime that it is linked with"
	}
	return "no program was seen to use CUDA through " + by
}

// unbounded says that a limit had no effect where nothing ran on the allocator.
func (cmd *runCmd) unbounded() string {
	if cmd.Limit == 0 {
		return ""
	}
	return ", and --limit bounded nothing"
}

// install puts into the folder what the program's processes load.
func (cmd *runCmd) install(folder string) error {
	var shared []string
	if cmd.Library == "" {
		shared = append(shared, library.Allocator)
	}
	if cmd.Preload {
		shared = append(shared, library.Preload)
	}
	for _, name := range shared {
		data, err := library.Read(name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, name), data, 0o700); err != nil {
			return err
		}
	}
	python := filepath.Join(folder, "python")
	if err := os.Mkdir(python, 0o700); err != nil {
		return err
	}
	return gmstitch.Install(python)
}
