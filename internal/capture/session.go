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
	Warn         func(format string, args ...any)
}

// shimName is the preload library's name in the session's folder.
const shimName = "libgmtrace.so"

// Session records the processes of one command.
type Session struct {
	options   Options
	folder    string
	cards     *cards
	processes []*process
	seen      map[string]bool // files of the folder that are opened
	live      *live.Server
	startNS   int64
	words     []string // the command
}

// NewSession makes the folder of a session, and puts into it what traced processes load. The session must be closed.
func NewSession(o Options) (*Session, error) {
	folder, err := os.MkdirTemp("", "gmtrace-")
	if err != nil {
		return nil, err
	}
	s := &Session{options: o, folder: folder, seen: map[string]bool{}, startNS: time.Now().UnixNano()}
	if err := s.install(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	if s.cards, err = openCards(); err != nil {
		o.Warn("no account of the whole card: %v", err)
	}
	if s.live, err = live.Serve(folder); err != nil {
		o.Warn("gmtrace top will not find this: %v", err)
	}
	return s, nil
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
	env := slices.Clone(base)
	set := func(name, value string) { env = append(env, name+"="+value) }
	before := func(name, value, separator string) {
		if old := lookup(base, name); old != "" {
			value += separator + old
		}
		set(name, value)
	}
	before(map[bool]string{false: "LD_PRELOAD", true: "LD_AUDIT"}[s.options.Audit], filepath.Join(s.folder, shimName), ":")
	before("PYTHONPATH", filepath.Join(s.folder, "python"), string(os.PathListSeparator))
	set("GMTRACE_DIR", s.folder)
	set("GMTRACE_MARKS", s.options.Marks)
	set("GMTRACE_STEPS", s.options.Steps.String())
	set("GMTRACE_STACKS", map[bool]string{true: "python"}[s.options.PythonStacks])
	set("GMTRACE_NATIVE", map[bool]string{true: "1"}[s.options.NativeStacks])
	set("GMTRACE_ONLY_OOM", map[bool]string{true: "1"}[s.options.OnlyOOM])
	return env
}

// lookup returns the value of a variable, the last one if it is there several times.
func lookup(env []string, name string) string {
	for _, text := range slices.Backward(env) {
		if value, ok := strings.CutPrefix(text, name+"="); ok {
			return value
		}
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

// Alive returns the traced processes that still run.
func (s *Session) Alive() []int {
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
	errs := []error{s.live.Close()}
	for _, p := range s.processes {
		errs = append(errs, p.close())
	}
	return errors.Join(append(errs, s.cards.close(), os.RemoveAll(s.folder))...)
}

// discover looks for new files in the folder.
func (s *Session) discover() error {
	entries, err := os.ReadDir(s.folder)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := entry.Name()
		if s.seen[name] {
			continue
		}
		var err error
		switch kind, pid, number := parseName(name); kind {
		case "ring":
			err = s.addRing(pid, name)
		case "torch":
			err = s.addTorch(pid, name)
		case "history":
			err = s.addDump(pid, number, name)
		default:
			continue
		}
		if err != nil {
			return err
		}
		s.seen[name] = true
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
func (s *Session) addRing(pid int, name string) error {
	p := s.find(pid)
	if p == nil || p.ring != nil {
		var err error
		if p, err = s.add(pid); err != nil {
			return err
		}
	}
	return p.open(filepath.Join(s.folder, name))
}

func (s *Session) addTorch(pid int, name string) error {
	p, err := s.findOrAdd(pid)
	if err != nil {
		return err
	}
	return p.greet(filepath.Join(s.folder, name))
}

func (s *Session) addDump(pid, number int, name string) error {
	p, err := s.findOrAdd(pid)
	if err != nil {
		return err
	}
	p.dumps[number] = filepath.Join(s.folder, name)
	return nil
}

func (s *Session) add(pid int) (*process, error) {
	p, err := newProcess(pid, s.folder, s.cards)
	if err != nil {
		return nil, err
	}
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
