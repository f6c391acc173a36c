package capture

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"gm/internal/capture/ring"
	"gm/internal/cli/command"
)

// sessionName is the file in a session's folder that describes the session for Recover.
const sessionName = "session.json"

// sessionFile is its content.
type sessionFile struct {
	Version int      `json:"version"`
	PID     int      `json:"pid"`   // of gmtrace
	Rings   string   `json:"rings"` // folder of the rings
	Home    string   `json:"home"`  // the session's own
	StartNS int64    `json:"start_ns"`
	Command []string `json:"command"`
	Marks   string   `json:"marks"`
	Steps   string   `json:"steps"`
	OnlyOOM bool     `json:"only_oom"`
}

const (
	sessionVersion = 1
	maxSessionFile = 4 << 20
	// keptFor is how long the recording of a killed gmtrace is kept. Afterwards the next session removes it.
	keptFor = 24 * time.Hour
)

// describe writes the session's description into both folders.
func (s *Session) describe() error {
	text, err := json.Marshal(sessionFile{
		Version: sessionVersion, PID: os.Getpid(), Rings: s.rings, Home: s.folder, StartNS: s.startNS, Command: s.words,
		Marks: s.options.Marks, Steps: s.options.Steps.String(), OnlyOOM: s.options.OnlyOOM,
	})
	for _, folder := range slices.Compact([]string{s.folder, s.rings}) {
		err = errors.Join(err, os.WriteFile(filepath.Join(folder, sessionName), text, 0o600))
	}
	return err
}

func readSessionFile(folder string) (sessionFile, error) {
	f, err := openRegular(filepath.Join(folder, sessionName))
	if err != nil {
		return sessionFile{}, err
	}
	defer f.Close()
	var about sessionFile
	if err := json.NewDecoder(io.LimitReader(f, maxSessionFile)).Decode(&about); err != nil {
		return sessionFile{}, fmt.Errorf("%s: %w", f.Name(), err)
	}
	if about.Version != sessionVersion {
		return sessionFile{}, fmt.Errorf("%s: made by another version of gmtrace", f.Name())
	}
	return about, nil
}

// recoverable reports whether a folder holds recordings that Recover may still be asked for: none older than keptFor count.
func recoverable(folder string) bool {
	patterns := []string{"ring.*", "history.*", "taken.*", "journals/journal.*", rescuedPrefix + "-*"}
	folders := []string{folder}
	if about, err := readSessionFile(folder); err == nil {
		folders = []string{about.Home, about.Rings}
	}
	for _, f := range folders {
		for _, pattern := range patterns {
			names, _ := filepath.Glob(filepath.Join(f, pattern))
			if slices.ContainsFunc(names, isRecent) {
				return true
			}
		}
	}
	return false
}

func isRecent(name string) bool {
	info, err := os.Stat(name)
	return err == nil && time.Since(info.ModTime()) < keptFor
}

// Recoverable returns the session folders in a folder of temporary files whose gmtrace has ended and from which Recover can make traces.
func Recoverable(temporary string) []string {
	var folders []string
	names, _ := filepath.Glob(filepath.Join(temporary, folderPrefix+"*", sessionName))
	for _, name := range names {
		folder := filepath.Dir(name)
		if f, err := command.OpenFolder(folder); err == nil {
			if recoverable(folder) {
				folders = append(folders, folder)
			}
			_ = f.Release()
		}
	}
	return folders
}

// Recover returns a session made from the folder of one that was killed or kept; its Recovered traces can be written. Recover does not
// change the folder. The caller must close the session.
func Recover(folder string, warn func(format string, args ...any)) (*Session, error) {
	about, err := readSessionFile(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("recover %s: it is not a folder of gmtrace run: it has no %s", folder, sessionName)
	} else if err != nil {
		return nil, fmt.Errorf("recover: %w", err)
	}
	if info, err := os.Stat(about.Home); err != nil || !info.IsDir() {
		about.Home = folder // the session's own was moved, or only the rings' folder is left
	}
	home, err := command.OpenFolder(about.Home)
	if errors.Is(err, command.ErrLocked) {
		return nil, fmt.Errorf("recover %s: gmtrace, process %d, still records into it", folder, about.PID)
	} else if err != nil {
		return nil, fmt.Errorf("recover: %w", err)
	}
	s := newSession(Options{Warn: warn, Marks: about.Marks, OnlyOOM: about.OnlyOOM}, about.Home)
	s.rings, s.words, s.startNS, s.keep, s.recovered, s.home = about.Rings, about.Command, about.StartNS, true, true, home
	if about.Steps != "" {
		if s.options.Steps, err = ParseSteps(about.Steps); err != nil {
			return nil, errors.Join(fmt.Errorf("recover %s: %w", folder, err), home.Release())
		}
	}
	if err := s.recover(); err != nil {
		return nil, errors.Join(fmt.Errorf("recover %s: %w", folder, err), s.Close())
	}
	return s, nil
}

// remains are the files left of one ring.
type remains struct {
	pid, number   int
	journal, ring string // "" if there is none
}

// recover reads the contents of the folders.
func (s *Session) recover() error {
	found := map[[2]int]*remains{}
	at := func(pid, number int) *remains {
		key := [2]int{pid, number}
		if found[key] == nil {
			found[key] = &remains{pid: pid, number: number}
		}
		return found[key]
	}
	for _, folder := range slices.Compact([]string{s.journals(), s.rings, s.folder}) {
		entries, err := os.ReadDir(folder)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, entry := range entries {
			file := filepath.Join(folder, entry.Name())
			switch kind, pid, number := parseName(entry.Name()); kind {
			case "journal":
				at(pid, number).journal = file
			case "ring":
				at(pid, number).ring = file
			}
		}
	}
	for _, r := range sortedRemains(found) {
		if err := s.recoverProcess(r); err != nil {
			s.odd++
			s.trouble(err)
		}
	}
	return s.recoverHistories()
}

func sortedRemains(found map[[2]int]*remains) []*remains {
	var all []*remains
	for _, r := range found {
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b *remains) int { return a.number - b.number })
	return all
}

// recoverProcess reads a journal, and what the ring holds after it.
func (s *Session) recoverProcess(r *remains) error {
	p := s.newProcess(r.pid)
	p.number, p.journal = r.number, &journal{name: r.journal}
	ended, err := p.readJournal()
	if err == nil && r.ring != "" && !ended {
		err = p.readRing(r.ring)
	}
	if err == nil && p.header == nil {
		err = fmt.Errorf("%s: it is empty", r.journal)
	}
	if err == nil {
		err = p.catchUp()
	}
	if err != nil {
		return errors.Join(err, p.close())
	}
	if !ended && r.ring == "" {
		p.lack("what it did last is missing, since its ring is gone")
	}
	if !p.life.dead() {
		p.lack("it still runs: what it did after it was read, and will do, is not in the trace")
	}
	s.processes = append(s.processes, p)
	return nil
}

// readJournal finds up to which position a journal reaches, and whether it was ended.
func (p *process) readJournal() (ended bool, err error) {
	if p.journal.name == "" {
		return false, nil
	}
	in, err := openFrames(p.journal.name)
	if err != nil {
		return false, err
	}
	defer in.close()
	for {
		f, err := in.next()
		if errors.Is(err, io.EOF) {
			return ended, nil
		} else if err != nil {
			return false, err
		}
		p.journal.size, p.journal.to = in.at, f.to
		switch f.kind {
		case frameAbout:
			p.header = &ring.Header{}
			err = json.Unmarshal(f.content, p.header)
		case frameEnd:
			ended = true
			err = json.Unmarshal(f.content, &p.counters)
		}
		if err != nil {
			return false, fmt.Errorf("%s: %w", p.journal.name, err)
		}
	}
}

// readRing reads what a ring holds after the journal.
func (p *process) readRing(file string) error {
	r, err := ring.OpenCopy(file)
	if err != nil {
		return err
	}
	if p.header == nil {
		p.header = &r.Header
	}
	r.Seek(p.journal.to)
	if err := r.Finish(func(rec *ring.Record) { p.journal.add(rec) }); err != nil {
		p.broken = true
		p.lack("its ring cannot be read to its end: %v", err)
	}
	p.counters = r.Counters()
	if !p.life.dead() {
		p.counters.Torn = 0 // the process is still writing them
	}
	return r.Close()
}

// catchUp interprets the records of a process, as poll does during a capture.
func (p *process) catchUp() error {
	r, err := p.replay()
	if err != nil {
		return err
	}
	for err == nil {
		_, err = r.next()
	}
	p.interpreter, p.endNS = r.interpreter, r.rows.last
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return errors.Join(err, r.close())
}

// recoverHistories reads the files of the Python hook that are still there.
func (s *Session) recoverHistories() error {
	entries, err := os.ReadDir(s.folder)
	if err != nil {
		return err
	}
	dumps := map[*process][]int{}
	for _, entry := range entries {
		kind, pid, number := parseName(entry.Name())
		file := filepath.Join(s.folder, entry.Name())
		switch kind {
		case "greeted", "torch":
			if err := s.findOrAdd(pid).readGreeting(file); err != nil {
				s.trouble(err)
			}
		case "history":
			p := s.findOrAdd(pid)
			p.dumps[number] = file
			dumps[p] = append(dumps[p], number)
		case "taken":
			s.findOrAdd(pid).taken = file
		}
	}
	for _, p := range s.processes {
		slices.Sort(dumps[p])
		p.recoverHistory(dumps[p])
	}
	return nil
}

// recoverHistory reads the last dump that the killed gmtrace had read, then the dumps with the given numbers.
func (p *process) recoverHistory(numbers []int) {
	var files []string
	if p.taken != "" {
		files = append(files, p.taken)
		p.lack("PyTorch's tensors that were freed before the last dump that gmtrace read are missing")
	}
	for _, n := range numbers {
		files = append(files, p.dumps[n])
	}
	for _, file := range files {
		f, err := openRegular(file)
		if err == nil {
			p.addDump(f)
			err = f.Close()
		}
		if err != nil && p.failed == nil {
			p.endHistory(err)
		}
		if p.failed != nil {
			return
		}
	}
}
