package capture

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"

	"gm/internal/capture/live"
	"gm/internal/cli/command"
	"gm/internal/torch/gmtrace"
)

// Options say what to record.
type Options struct {
	Library      []byte // the preload library, a shared object
	Audit        bool   // load it as an auditor, which sees what preloading does not
	PythonStacks bool
	NativeStacks bool
	Marks        string // module:function whose every return ends an iteration; "" for the steps of optimizers
	Steps        *Steps // iterations to record; nil for all
	OnlyOOM      bool   // write only the traces of programs that run out of memory
	Output       string // absolute pattern of the traces' names, which gmtrace top shows; "" if they go to no file
	Warn         func(format string, args ...any)
}

const (
	shimName     = "libgmtrace.so" // the preload library's name in the session's folder
	folderPrefix = "gmtrace-"
	memoryFolder = "/dev/shm"
)

// Session records the processes of one command.
type Session struct {
	options   Options
	folder    string
	rings     string // folder of the rings: in memory, or the same
	cards     *cards
	processes []*process
	packer    *zstd.Encoder
	known     map[string]bool // names of rings
	live      *live.Server
	startNS   int64
	words     []string // of the command

	home, memory *command.Folder // memory is nil where no folder could be made in /dev/shm
	interrupted  bool
	told         map[string]bool // warnings that were printed
	recovered    bool            // made by Recover
	daytime      daytime
	odd          int  // files whose contents are not what their names say
	waiting      int  // files that could not be opened yet, since descriptors or memory ran out
	keep         bool // Close leaves the folders, since something in them exists nowhere else
}

// NewSession makes the folders of a session and installs in them what traced processes load. The caller must close the session.
func NewSession(o Options) (*Session, error) {
	home, err := command.MakeFolder(command.TempDir(), folderPrefix, recoverable)
	if err != nil {
		return nil, err
	}
	s := newSession(o, home.Path)
	s.home, s.startNS = home, time.Now().UnixNano()
	// On a disk, whose pages are written back, a ring is several times slower than in memory.
	if s.memory, err = command.MakeFolder(memoryFolder, folderPrefix, recoverable); err == nil {
		s.rings = s.memory.Path
	}
	if err := s.install(); err != nil {
		return nil, errors.Join(err, s.remove())
	}
	if s.cards, err = openCards(); err != nil {
		o.Warn("no account of the whole card: %v", err)
	}
	if s.live, err = live.Serve(s.folder); err != nil {
		o.Warn("gmtrace top will not find this: %v", err)
	}
	return s, nil
}

func newSession(o Options, folder string) *Session {
	return &Session{options: o, folder: folder, rings: folder, known: map[string]bool{}, told: map[string]bool{}}
}

// remove removes the folders.
func (s *Session) remove() error {
	if s.memory == nil {
		return s.home.Remove()
	}
	return errors.Join(s.memory.Remove(), s.home.Remove())
}

func (s *Session) install() (err error) {
	if s.packer, err = newPacker(); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(s.folder, shimName), s.options.Library, 0o700); err != nil {
		return err
	}
	python := filepath.Join(s.folder, "python")
	for _, folder := range []string{python, s.journals()} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			return err
		}
	}
	if err := s.describe(); err != nil {
		return err
	}
	return gmtrace.Install(python)
}

// journals returns the folder of the journals. discover does not look into it.
func (s *Session) journals() string { return filepath.Join(s.folder, "journals") }

// Environ returns base with the variables that make programs load the recorders.
func (s *Session) Environ(base []string) []string {
	env := command.Environ(slices.Clone(base))
	outer := env.Get("GMTRACE_DIR") // of an enclosing session, which this one replaces
	loader := "LD_PRELOAD"
	if s.options.Audit {
		loader = "LD_AUDIT"
	}
	env.Prepend(loader, filepath.Join(s.folder, shimName), ":", outer)
	env.Prepend("PYTHONPATH", filepath.Join(s.folder, "python"), string(os.PathListSeparator), outer)
	env.Set("GMTRACE_DIR", s.folder)
	env.Set("GMTRACE_RINGS", s.rings)
	env.Set("GMTRACE_MARKS", s.options.Marks)
	env.Set("GMTRACE_STEPS", s.options.Steps.String())
	env.Set("GMTRACE_STACKS", when(s.options.PythonStacks, "python"))
	env.Set("GMTRACE_NATIVE", when(s.options.NativeStacks, "1"))
	env.Set("GMTRACE_ONLY_OOM", when(s.options.OnlyOOM, "1"))
	return env
}

// when returns text if wanted, else "".
func when(wanted bool, text string) string {
	if wanted {
		return text
	}
	return ""
}

// Poll reads what the processes recorded since the last call. Call it every few milliseconds. An error is reported as a warning and affects
// only the process in which it occurred.
func (s *Session) Poll() {
	now := time.Now()
	s.watchClock()
	s.discover()
	for _, p := range s.processes {
		p.poll(now)
	}
	if s.cards.due(now) {
		s.cards.sample(now)
		for _, p := range s.processes {
			p.sample(s.cards)
		}
	}
	s.live.Answer(s.View)
}

// trouble warns once of an error that concerns the session as a whole. The session continues.
func (s *Session) trouble(err error) {
	if text := err.Error(); !s.told[text] && len(s.told) < maxTold {
		s.told[text] = true
		s.options.Warn("%s", text)
	}
}

// maxTold bounds the number of warnings.
const maxTold = 20

// drain empties all rings.
func (s *Session) drain() {
	now := time.Now()
	for _, p := range s.processes {
		p.read(false, now)
	}
}

// alive returns the traced processes that still run.
func (s *Session) alive() []int {
	var pids []int
	for _, p := range s.processes {
		if !p.life.dead() {
			pids = append(pids, p.pid)
		}
	}
	return pids
}

// Failed returns, as one error, what errors kept from being recorded; nil if the recording is complete.
func (s *Session) Failed() error {
	var broken []*process
	files := s.odd + s.waiting
	for _, p := range s.processes {
		if p.broken {
			broken = append(broken, p)
		}
	}
	switch {
	case len(broken)+files == 0:
		return nil
	case len(broken) == 1 && files == 0:
		return fmt.Errorf("the recording of process %d is incomplete: %s", broken[0].pid, broken[0].lacks[0].text)
	case len(broken) == 0:
		return fmt.Errorf("the recording is incomplete: files that could not be read: %d", files)
	}
	return fmt.Errorf("the recording is incomplete: processes that could not be recorded to their end: %d; files that could not be read: %d", len(broken), files)
}

// Keep makes Close leave the folders, since something in them exists nowhere else.
func (s *Session) Keep() { s.keep = true }

// Kept returns the folder from which Recover can make traces; "" if everything was read and written.
func (s *Session) Kept() string {
	if s.keep || s.odd+s.waiting > 0 || slices.ContainsFunc(s.processes, func(p *process) bool { return p.kept }) {
		return s.folder
	}
	return ""
}

// Close ends the session and its recording of processes that still run. It removes the folders unless Kept names one.
func (s *Session) Close() error {
	s.live.Close()
	var errs []error
	kept := s.Kept() != ""
	for _, p := range s.processes {
		if kept && p.ring != nil {
			errs = append(errs, p.journal.flush(p.ring.Position(), time.Now()))
		}
		errs = append(errs, p.close())
	}
	if s.cards != nil {
		errs = append(errs, s.cards.close())
	}
	switch {
	case !kept:
		errs = append(errs, s.remove())
	default:
		errs = append(errs, s.home.Release())
		if s.memory != nil {
			errs = append(errs, s.memory.Release())
		}
	}
	return errors.Join(errs...)
}

// discover looks for new files in the folders.
func (s *Session) discover() {
	s.waiting = 0
	if s.rings != s.folder {
		s.discoverIn(s.rings)
	}
	s.discoverIn(s.folder)
}

func (s *Session) discoverIn(folder string) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		s.trouble(fmt.Errorf("look for files of traced processes: %w", err))
	}
	for _, entry := range entries {
		kind, pid, number := parseName(entry.Name())
		file := filepath.Join(folder, entry.Name())
		if kind == "" || s.known[file] {
			continue
		}
		switch err := s.add(kind, pid, number, file); {
		case err == nil || errors.Is(err, fs.ErrNotExist):
		case errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) || errors.Is(err, unix.ENOMEM):
			s.waiting++
			s.trouble(err) // the next poll tries again
		default:
			s.known[file] = true
			s.odd++
			s.trouble(fmt.Errorf("not recorded: %w", err))
		}
	}
}

// add registers a new file of a kind.
func (s *Session) add(kind string, pid, number int, file string) error {
	switch kind {
	case "ring":
		return s.addRing(pid, number, file)
	case "torch":
		return s.findOrAdd(pid).greet(file)
	case "history":
		p := s.findOrAdd(pid)
		p.dumps[number] = file
		p.nextDump = min(p.nextDump, number) // with Options.OnlyOOM every dump has number 0
	case "noring":
		s.known[file] = true
		p := s.findOrAdd(pid)
		p.broken = true
		p.lack("its calls of the driver are not recorded, since its ring could not be made: is there room in %s or %s?", s.rings, s.folder)
	}
	return nil
}

// parseName splits the name of a file in the folder: ring.PID.N, torch.PID.json or history.PID.N.pickle. kind is "" for any other file.
func parseName(name string) (kind string, pid, number int) {
	parts := strings.Split(name, ".")
	if len(parts) < 3 || parts[len(parts)-1] == "tmp" {
		return "", 0, 0
	}
	pid, err := strconv.Atoi(parts[1])
	if err != nil {
		return "", 0, 0
	}
	number, _ = strconv.Atoi(parts[2])
	return parts[0], pid, number
}

// addRing opens a ring of a process that has none, or of a new program in a known process (exec).
func (s *Session) addRing(pid, number int, file string) error {
	p := s.find(pid)
	fresh := p == nil || p.header != nil
	if fresh {
		p = s.newProcess(pid)
	}
	if err := p.open(file, s.journals(), number, s.packer); err != nil {
		return errors.Join(err, p.life.closeIf(fresh))
	}
	s.known[file] = true
	if fresh {
		s.processes = append(s.processes, p)
	}
	return nil
}

func (s *Session) newProcess(pid int) *process {
	p := newProcess(pid, s.folder, s.cards, s.options.Warn)
	p.drain = s.drain
	return p
}

func (s *Session) findOrAdd(pid int) *process {
	p := s.find(pid)
	if p == nil {
		p = s.newProcess(pid)
		s.processes = append(s.processes, p)
	}
	return p
}

// find returns the latest process with a PID, nil if there is none.
func (s *Session) find(pid int) *process {
	for _, p := range slices.Backward(s.processes) {
		if p.pid == pid {
			return p
		}
	}
	return nil
}
