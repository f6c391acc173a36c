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

	"github.com/klauspost/compress/zstd"

	"gm/formats/column"
	"gm/internal/capture/ring"
	"gm/internal/torch/snapshot"
)

// process is a traced process, from its start or its last exec to its end or the next exec.
type process struct {
	pid    int
	number int // of its ring; rings of one PID are numbered in the order of their programs
	folder string
	life   life

	header   *ring.Header // nil until the process touches CUDA
	ring     *ring.Ring   // nil until then, and once all of it is in the journal
	ringFile string
	over     bool // the ring is read no more
	endNS    int64
	journal  *journal
	retry    time.Time // when to write the journal again after an error
	counters ring.Counters

	interpreter *interpreter // of the records so far
	live        account
	samples     map[int32]processSamples

	greeting greeting
	history  *snapshot.Join  // nil until the first dump
	texts    *column.Strings // of the history
	dumps    map[int]string  // files still to read, by number
	nextDump int
	taken    string // the file of the last dump that a killed gmtrace had read; set by Recover
	drain    func() // empties all rings while a long dump is read, so that no process waits for its end
	failed   error  // why the history ends early
	headless bool   // PyTorch's history had wrapped around before the first dump

	warn   func(format string, args ...any)
	notes  []mark // other events, such as a clock that was set
	lacks  []mark // what is missing in the recording, and when that was found
	broken bool   // the recording is incomplete because of an error
	kept   bool   // the ring's file stays, since it could not be read to its end
}

// greeting is what the Python hook reports when it starts.
type greeting struct {
	Torch   string `json:"torch"`
	History string `json:"history"` // "on", or why it is off
	Ring    int    `json:"ring"`    // entries that PyTorch keeps for each device
}

// maxGreeting is the most bytes of a greeting that are read.
const maxGreeting = 64 << 10

func newProcess(pid int, folder string, cards *cards, warn func(string, ...any)) *process {
	p := &process{
		pid: pid, folder: folder, life: newLife(pid), samples: map[int32]processSamples{}, dumps: map[int]string{},
		texts: column.NewStrings(), warn: warn,
	}
	p.live = newAccount(p.texts)
	p.interpreter = newInterpreter(p.live.driver, asker{cards, pid})
	return p
}

// lack notes what is missing in the recording, and warns of it at once.
func (p *process) lack(format string, args ...any) {
	m := mark{p.now(), fmt.Sprintf(format, args...)}
	if !slices.ContainsFunc(p.lacks, func(old mark) bool { return old.text == m.text }) {
		p.lacks = append(p.lacks, m)
		p.warn("process %d: %s", p.pid, m.text)
	}
}

// now returns the time on the clock of the process's records; after their end, the time of the end.
func (p *process) now() int64 {
	switch {
	case p.ring != nil:
		return p.ring.Now()
	case p.endNS > 0:
		return p.endNS
	}
	return time.Now().UnixNano()
}

// open starts reading a ring.
func (p *process) open(file, journals string, number int, packer *zstd.Encoder) error {
	r, err := ring.Open(file)
	if err != nil {
		return err
	}
	p.ring, p.ringFile, p.number, p.header = r, file, number, &r.Header
	p.journal = &journal{name: journalName(journals, p.pid, number), packer: packer, about: r.Header}
	return nil
}

// journalName returns the name of the journal of a ring.
func journalName(folder string, pid, number int) string {
	return filepath.Join(folder, fmt.Sprintf("journal.%d.%d", pid, number))
}

// greet reads the hook's greeting and renames its file, since the next program of the process may write its own.
func (p *process) greet(file string) error {
	if err := p.readGreeting(file); err != nil {
		return err
	}
	return os.Rename(file, filepath.Join(p.folder, fmt.Sprintf("greeted.%d.json", p.pid)))
}

func (p *process) readGreeting(file string) error {
	f, err := openRegular(file)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := json.NewDecoder(io.LimitReader(f, maxGreeting)).Decode(&p.greeting); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// poll reads what the process recorded since the last call.
func (p *process) poll(now time.Time) {
	dead := p.life.dead() // asked before the ring is read, so that nothing is written after the last read
	p.read(dead, now)
	if dead {
		_ = p.life.close() // a command may start thousands of processes, one after another
	}
	for file, ok := p.dumps[p.nextDump]; ok; file, ok = p.dumps[p.nextDump] {
		if !p.takeDump(file) {
			return
		}
	}
}

// read reads the ring; all that is left in it when the process is dead.
func (p *process) read(dead bool, now time.Time) {
	if p.ring == nil {
		return
	}
	visit := func(r *ring.Record) {
		p.interpreter.take(r)
		p.journal.add(r)
	}
	var err error
	if !p.over && !dead {
		err = p.ring.Read(visit)
	}
	if !p.over && (dead || err != nil) {
		p.over = true
		p.ring.Shut()
		if finished := p.ring.Finish(visit); err == nil {
			err = finished
		}
	}
	if err != nil {
		p.broken, p.kept = true, true
		p.lack("its ring cannot be read to its end: %v", err)
	}
	p.keep(now)
}

// keep writes what was read into the journal when a frame is due, and frees its slots in the ring. At the ring's end it writes all.
func (p *process) keep(now time.Time) {
	if now.Before(p.retry) || !p.over && !p.journal.due(p.ring.Pending(), now) {
		return
	}
	err := p.journal.flush(p.ring.Position(), now)
	if err == nil {
		p.retry = time.Time{}
		p.ring.Free()
		if p.over {
			p.conclude()
		}
		return
	}
	p.retry = now.Add(framePeriod / 10)
	if p.ring.Full() && !p.over {
		p.over, p.broken = true, true
		p.ring.Shut() // before the process waits for room
		p.lack("what it does from now on is not recorded: %v", err)
	}
}

// conclude ends a complete journal, and closes and removes the ring.
func (p *process) conclude() {
	p.endNS = p.ring.Now()
	err := p.ring.Close()
	p.counters = p.ring.Counters()
	if !p.kept {
		err = errors.Join(err, os.Remove(p.ringFile))
	}
	p.ring = nil
	if err := errors.Join(err, p.journal.end(p.counters)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.warn("process %d: %v", p.pid, err) // no data is lost
	}
}

// count returns the counters of the ring so far.
func (p *process) count() ring.Counters {
	if p.ring != nil {
		return p.ring.Counters()
	}
	return p.counters
}

// sample records NVML's figures for the process and its cards.
func (p *process) sample(c *cards) {
	if p.ring == nil || p.over {
		return
	}
	c.compare(p.pid, p.interpreter.devices, p.samples, func(device int32, whose uint64, used int64) {
		r := ring.Record{Kind: kindSample, TimeNS: p.ring.Now(), Device: device, A: whose, B: uint64(used)}
		p.interpreter.take(&r)
		p.journal.add(&r)
	})
}

func (p *process) close() error {
	errs := []error{p.life.close()}
	if p.ring != nil {
		errs = append(errs, p.ring.Close())
	}
	if p.history != nil {
		errs = append(errs, p.history.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("process %d: %w", p.pid, err)
	}
	return nil
}
