package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"

	"gm/internal/cli"
	"gm/internal/cli/command"
	"gm/internal/libgm/library"
	"gm/internal/libgm/planner"
	"gm/internal/swap/store"
	"gm/internal/torch/gmstitch"
	"gm/internal/torch/gmswap"
	"gm/internal/units"
)

type runCmd struct {
	Command   []string    `arg:"" optional:"" passthrough:"" name:"command" help:"The program to run, and its arguments."`
	Memory    units.Bytes `short:"m" placeholder:"SIZE" help:"Use at most this much memory of each device. By default what --schedule was made for, or all of it."`
	Host      units.Bytes `placeholder:"SIZE" help:"Use at most this much host memory, all processes together. Three quarters of what is available by default."`
	Policy    string      `default:"auto" placeholder:"NAME" help:"Which policy makes the schedule (${default}), see the list below."`
	Link      string      `placeholder:"FILE" help:"How fast copies are, as gmswap bandwidth measured it. Those of an H200 by default."`
	Schedule  string      `placeholder:"FILE" help:"Follow this schedule, which gmswap plan made for a recording of the same program. For a step that it does not fit, --policy makes another."`
	OOM       bool        `name:"oom" help:"Raise torch.OutOfMemoryError where nothing more can be moved. By default such requests have memory of the host, which the GPU uses over the link."`
	Early     bool        `name:"early-updates" help:"Update each parameter as soon as its gradient is complete, and drop the gradient; a line says why where that would be wrong."`
	DryRun    bool        `help:"Record and plan, print what the schedule would take, and move nothing after that."`
	Allocator string      `default:"stitch" enum:"stitch,torch" help:"Which allocator to use: stitch, gmstitch's, or torch, PyTorch's own (${default})."`
	Record    string      `placeholder:"FILE" help:"Write the graph of the recorded step; %p in the name is the pid. Without it, processes that train together overwrite each other's files."`
	Stats     string      `placeholder:"FILE" help:"Write an account of each process at its end, as JSON; %p as for --record."`
	Progress  bool        `help:"Print a line for each step."`
	Order     bool        `help:"Have what torch.compile makes run its operators in gm's order where that takes less memory than Inductor's."`
	Library   string      `placeholder:"FILE" help:"A libgm.so to use instead of the one that gmswap contains."`

	library.Served

	all bool // record all that a step does, and move nothing
}

// Help implements kong.HelpProvider.
func (cmd *runCmd) Help() string {
	return "Example: gmswap run -m 40GiB -- python train.py\n\n" +
		"The program is not changed. Its second and third step are watched, and what does not fit is moved as it comes; later ones follow a schedule. " +
		"The program's exit status is passed through.\n\n" + policyHelp()
}

// Run implements the command.
func (cmd *runCmd) Run(c *cli.Context) error {
	words, err := command.Words(c.Tool+" run", cmd.Command)
	if err != nil {
		return err
	}
	if err := cmd.check(); err != nil {
		return err
	}
	return cmd.inFolder(c, func(folder string) (int, error) {
		passed := watchTraffic()
		status, err := cmd.runIn(c, folder, words, os.Stdout)
		passed.say(c)
		if _, failed := os.Stat(filepath.Join(folder, gmswap.Mark)); failed != nil && err == nil {
			c.Warn("no PyTorch program was seen to train on a GPU: nothing was moved")
		}
		return status, err
	})
}

// check looks for what no process should have to find out.
func (cmd *runCmd) check() error {
	if _, err := lookupPolicy(cmd.Policy); err != nil {
		return err
	}
	switch {
	case cmd.Name != "" && !cmd.Server:
		return cli.Usage("--name is for the memory server: add --server")
	case cmd.Server && cmd.Allocator != "stitch":
		return cli.Usage("--server is for memory of --allocator stitch alone")
	}
	flags := map[string]string{} // by file
	for _, out := range cmd.outputs() {
		path, err := filepath.Abs(out.file)
		if err != nil {
			return err
		}
		if other, ok := flags[path]; ok {
			return cli.Usage("%s and %s are both %s", other, out.flag, out.file)
		}
		flags[path] = out.flag
		if err := cli.CheckFiles([]string{cmd.Link, cmd.Schedule}, []string{out.file}); err != nil {
			return err
		}
	}
	if err := errors.Join(cli.ForPrograms("--link", cmd.Link), cli.ForPrograms("--schedule", cmd.Schedule)); err != nil {
		return err
	}
	if err := cmd.look(); err != nil {
		return err
	}
	if err := cmd.findLibrary(); err != nil {
		return err
	}
	_, err := readLink(cmd.Link)
	return err
}

// findLibrary makes the library's name that of any folder that the program may go to.
func (cmd *runCmd) findLibrary() error {
	if cmd.Library == "" {
		return nil
	}
	if err := cli.ForPrograms("--library", cmd.Library); err != nil {
		return err
	}
	path, err := filepath.Abs(cmd.Library)
	cmd.Library = path
	return err
}

// look looks at the schedule, which tells how much memory to use.
func (cmd *runCmd) look() error {
	if cmd.Schedule == "" {
		return nil
	}
	s, err := store.ReadSchedule(cmd.Schedule)
	if err == nil && cmd.Memory == 0 && s.Meta.DeviceBudget < int64(unlimited) {
		cmd.Memory = units.Bytes(s.Meta.DeviceBudget)
	}
	return err
}

// output is a file that processes of the program write.
type output struct{ flag, variable, file string }

// outputs lists those that are asked for.
func (cmd *runCmd) outputs() []output {
	all := []output{{"--record", "GMSWAP_RECORD", cmd.Record}, {"--stats", "GMSWAP_STATS", cmd.Stats}}
	return slices.DeleteFunc(all, func(o output) bool { return o.file == "" })
}

// inFolder calls run with a folder for what the program loads, and passes on the exit status that it returns.
func (cmd *runCmd) inFolder(c *cli.Context, run func(folder string) (int, error)) error {
	if cmd.Host == 0 {
		available, err := availableMemory(os.DirFS("/"))
		if err != nil {
			return fmt.Errorf("find out how much host memory there is: %w; --host says how much to use", err)
		}
		cmd.Host = units.Bytes(available / 4 * 3)
	}
	folder, err := command.MakeFolder(command.TempDir(), "gmswap-", nil)
	if err != nil {
		return fmt.Errorf("prepare the run: %w; TMPDIR can name another folder than %s", err, command.TempDir())
	}
	status, err := run(folder.Path)
	if failed := folder.Remove(); failed != nil {
		c.Warn("%v", failed)
	}
	if failed, ok := errors.AsType[*command.StartError](err); ok {
		c.Fail(failed)
		return cli.Status(failed.Status())
	}
	if err != nil {
		return err
	}
	return cli.Status(status)
}

// runIn runs the command with a folder for what it loads.
func (cmd *runCmd) runIn(c *cli.Context, folder string, words []string, stdout *os.File) (status int, err error) {
	e := command.Environ(os.Environ())
	if err := cmd.install(folder, &e); err != nil {
		return 0, err
	}
	if err := cmd.settings(&e); err != nil {
		return 0, err
	}
	if plans, err := planner.Listen(folder, c.Tool); err != nil {
		c.Warn("no schedules are made: %v", err)
	} else {
		defer plans.Close()
		e.Set("GM_PLANNER", plans.Path)
	}
	if warning, err := cmd.Install(folder, &e); err != nil {
		return 0, err
	} else if warning != "" {
		c.Warn("%s", warning)
	}
	child := exec.Command(words[0], words[1:]...)
	child.Stdin, child.Stdout, child.Stderr, child.Env = os.Stdin, stdout, os.Stderr, e
	defer c.OwnSignals()()
	defer command.KeepFromPipe()()
	result, err := command.Run(child, 0, nil)
	return result.Status, err
}

// install puts into the folder what the program's processes load, and names it in the environment. Within a run of gmstitch its
// library is used: there can be but one in a process.
func (cmd *runCmd) install(folder string, e *command.Environ) error {
	shared := cmd.Library
	if shared == "" {
		shared = e.Get("GM_LIB")
	}
	if shared == "" {
		data, err := library.Read(library.Allocator)
		if err != nil {
			return err
		}
		shared = filepath.Join(folder, library.Allocator)
		if err := os.WriteFile(shared, data, 0o700); err != nil {
			return err
		}
	}
	e.Set("GM_LIB", shared)
	packages := []pythonPackage{{"GMSWAP_DIR", "swap", gmswap.Install}}
	if cmd.Allocator == "stitch" && e.Get("GMSTITCH_DIR") == "" {
		packages = append(packages, pythonPackage{"GMSTITCH_DIR", "stitch", gmstitch.Install})
	}
	for _, p := range packages {
		outer := e.Get(p.variable)
		path := filepath.Join(folder, p.name)
		if err := os.Mkdir(path, 0o700); err != nil {
			return err
		}
		if err := p.install(path); err != nil {
			return err
		}
		e.Prepend("PYTHONPATH", path, string(os.PathListSeparator), outer)
		e.Set(p.variable, folder)
	}
	return nil
}

// pythonPackage is what a tool brings into Python processes.
type pythonPackage struct {
	variable string // names the folder of the run
	name     string
	install  func(dir string) error
}

// cacheTag is a part of the keys of PyTorch's caches of compiled programs.
const cacheTag = "TORCH_COMPILE_CACHE_KEY_TAG"

// settings puts into the environment what the library and the hook read there.
func (cmd *runCmd) settings(e *command.Environ) error {
	e.Set("GMSWAP_HOST", strconv.FormatInt(int64(cmd.Host), 10))
	e.Set("GMSWAP_POLICY", cmd.Policy)
	if cmd.Memory > 0 {
		e.Set("GMSWAP_DEVICE", strconv.FormatInt(int64(cmd.Memory), 10))
		if cmd.Allocator == "stitch" && !cmd.DryRun { // a dry run's steps need what they need: nothing is moved
			e.Set("GM_LIMIT", strconv.FormatInt(int64(cmd.Memory), 10))
		}
	}
	if cmd.Order {
		e.Set(cacheTag, e.Get(cacheTag)+"gmswap-order") // PyTorch's caches hold what was compiled without it
	}
	switches := map[string]bool{
		"GMSWAP_PROGRESS": cmd.Progress, "GMSWAP_DRY": cmd.DryRun, "GMSWAP_ALL": cmd.all, "GMSWAP_ORDER": cmd.Order, "GMSWAP_EARLY": cmd.Early, "GMSWAP_OOM": cmd.OOM,
	}
	for variable, on := range switches {
		if on {
			e.Set(variable, "1")
		}
	}
	for variable, file := range map[string]string{"GMSWAP_LINK": cmd.Link, "GMSWAP_SCHEDULE": cmd.Schedule} {
		if file == "" {
			continue
		}
		path, err := filepath.Abs(file)
		if err != nil {
			return err
		}
		e.Set(variable, path)
	}
	for _, out := range cmd.outputs() {
		path, err := filepath.Abs(out.file)
		if err != nil {
			return err
		}
		e.Set(out.variable, path)
	}
	return nil
}
