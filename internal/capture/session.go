package capture

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"gm/internal/capture/live"
	"gm/internal/capture/ring"
	"gm/internal/command"
	"gm/internal/torch/hook"
)

// Options say what to record.
type Options struct {
	Library      []byte // the preload library, a shared object
	Audit        bool   // load it as an auditor, which sees what preloading does not
	PythonStacks bool
	NativeStacks bool
	Marks        string // module:function whose every return ends an iteration; "" for the steps of optimizers
	Steps        *Steps // iterations to record; nil for all
	OnlyOOM      bool   // write traces only of programs that die of a lack of memory
	Output       string // pattern of the traces' names, from the root, for those who look on; "" if they go to no file
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
	live      *live.Server
	startNS   int64
	words     []string // the command

	home, memory *command.Folder // the second is nil where there is none in memory
	interrupted  bool
}

// NewSession makes the folders of a session, and puts into one what traced processes load. The session must be closed.
func NewSession(o Options) (*Session, error) {
	home, err := command.MakeFolder(command.TempDir(), folderPrefix)
	if err != nil {
		return nil, err
	}
	s := &Session{options: o, home: home, folder: home.Path, rings: home.Path, startNS: time.Now().UnixNano()}
	// On a disk, where pages are written back, a ring is several times slower than in memory.
	if s.memory, err = command.MakeFolder(memoryFolder, folderPrefix); err == nil {
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

// remove removes the folders.
func (s *Session) remove() error {
	if s.memory == nil {
		return s.home.Remove()
	}
	return errors.Join(s.memory.Remove(), s.home.Remove())
}

func (s *Session) install() error {
	if err := os.WriteFile(filepath.Join(s.folder, shimName), s.options.Library, 0o700); err != nil {
		return err
	}
	python := filepath.Join(s.folder, "python")
	if err := os.Mkdir(python, 0o700); err != nil {
		return err
	}
	return hook.Install(python)
}

// Environ returns the environment for the command, made of a given one.
func (s *Session) Environ(base []string) []string {
	env := command.Environ(slices.Clone(base))
	outer := env.Get("GMTRACE_DIR") // of a session that this one is within: a program has one
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

// when returns a text if it is wanted, else "".
func when(wanted bool, text string) string {
	if wanted {
		return text
	}
	return ""
}

// Poll takes in what the processes have told since the last time. It is to be called every few milliseconds.
func (s *Session) Poll() error {
	if err := s.discover(); err != nil {
		return err
	}
	for _, p := range s.processes {
		if err := p.poll(); err != nil {
			return fmt.Errorf("process %d: %w", p.pid, err)
		}
	}
	if now := time.Now(); s.cards.due(now) {
		s.cards.sample(now)
		for _, p := range s.processes {
			if err := p.sample(s.cards); err != nil {
				return fmt.Errorf("process %d: %w", p.pid, err)
			}
		}
	}
	s.live.Answer(s.View)
	return nil
}

// drain empties the rings.
func (s *Session) drain() error {
	for _, p := range s.processes {
		if p.ring == nil {
			continue
		}
		if err := p.read(false); err != nil {
			return fmt.Errorf("process %d: %w", p.pid, err)
		}
	}
	return nil
}

// alive returns the traced processes that still run.
func (s *Session) alive() []int {
	var pids []int
	for _, p := range s.processes {
		if !p.dead() {
			pids = append(pids, p.pid)
		}
	}
	return pids
}

// Close ends the session and removes its folder. Processes that still run are recorded no longer.
func (s *Session) Close() error {
	s.live.Close()
	var errs []error
	for _, p := range s.processes {
		errs = append(errs, p.close())
	}
	return errors.Join(append(errs, s.cards.close(), s.remove())...)
}

// silence tells all processes, also those that began just now, to write no more, and throws away what they wrote.
func (s *Session) silence() {
	for _, p := range s.processes {
		if p.ring != nil {
			_ = p.ring.Close()
		}
	}
	for _, folder := range []string{s.rings, s.folder} {
		entries, _ := os.ReadDir(folder)
		for _, entry := range entries {
			kind, _, _ := parseName(entry.Name())
			file := filepath.Join(folder, entry.Name())
			if kind == "ring" {
				if r, err := ring.Open(file); err == nil {
					_ = r.Close()
				}
			}
			if kind == "ring" || kind == "history" {
				_ = os.Remove(file)
			}
		}
	}
}

// discover looks for new files in the folders.
func (s *Session) discover() error {
	if s.rings != s.folder {
		if err := s.discoverIn(s.rings); err != nil {
			return err
		}
	}
	return s.discoverIn(s.folder)
}

func (s *Session) discoverIn(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		file := filepath.Join(folder, entry.Name())
		switch kind, pid, number := parseName(entry.Name()); kind {
		case "ring":
			err = s.addRing(pid, file)
		case "torch":
			err = s.addTorch(pid, file)
		case "history":
			err = s.addDump(pid, number, file)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// parseName takes the name of a file in the folder apart: ring.PID.N, torch.PID.json or history.PID.N.pickle.
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

// addRing opens a ring: of a process that has none, or of a new program in an old one.
func (s *Session) addRing(pid int, file string) error {
	p := s.find(pid)
	if p == nil || p.ring != nil {
		var err error
		if p, err = s.add(pid); err != nil {
			return err
		}
	}
	return p.open(file)
}

func (s *Session) addTorch(pid int, file string) error {
	p, err := s.findOrAdd(pid)
	if err != nil {
		return err
	}
	return p.greet(file)
}

func (s *Session) addDump(pid, number int, file string) error {
	p, err := s.findOrAdd(pid)
	if err != nil {
		return err
	}
	p.dumps[number] = file
	p.nextDump = min(p.nextDump, number) // with Options.OnlyOOM each has number 0
	return nil
}

func (s *Session) add(pid int) (*process, error) {
	p, err := newProcess(pid, s.folder, s.cards)
	if err != nil {
		return nil, err
	}
	p.drain = s.drain
	s.processes = append(s.processes, p)
	return p, nil
}

func (s *Session) findOrAdd(pid int) (*process, error) {
	if p := s.find(pid); p != nil {
		return p, nil
	}
	return s.add(pid)
}

// find returns the last process of a pid.
func (s *Session) find(pid int) *process {
	for _, p := range slices.Backward(s.processes) {
		if p.pid == pid {
			return p
		}
	}
	return nil
}
