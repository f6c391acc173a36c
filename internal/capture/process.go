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

// process is a traced process, or what it was until it executed another program.
type process struct {
	pid    int
	number int // of its ring: those of one PID are in the order of their numbers
	folder string
	life   life

	header   *ring.Header // nil until it touches CUDA
	ring     *ring.Ring   // nil until then, and when all of it is in the journal
	ringFile string
	over     bool // nothing more is read from the ring
	endNS    int64
	journal  *journal
	retry    time.Time // when the journal is tried again
	counters ring.Counters

	interpreter *interpreter // of what is known now
	live        account
	samples     map[int32]processSamples

	greeting greeting
	history  *snapshot.Join  // nil until there is a dump
	texts    *column.Strings // of the history
	dumps    map[int]string  // files to take in, by number
	nextDump int
	taken    string // the last dump that was taken in, when there is no other trace of it
	drain    func() // empties all rings: a dump may be long, and their processes must not wait for its end
	failed   error  // why the history ends early
	headless bool   // the history had gone round when it was first dumped

	warn   func(format string, args ...any)
	notes  []mark // of what else happened
	lacks  []mark // what is missing in the recording, and when that was found
	broken bool   // by an error of this program or its surroundings
	kept   bool   // its ring holds what could not be taken in
}

// greeting is what the Python hook says of itself.
type greeting struct {
	Torch   string `json:"torch"`
	History string `json:"history"` // "on", or why it is not
	Ring    int    `json:"ring"`    // entries of a device that PyTorch keeps
}

// maxGreeting bounds the bytes of a greeting.
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

// lack takes note of what is missing in the recording, and says so at once.
func (p *process) lack(format string, args ...any) {
	m := mark{p.now(), fmt.Sprintf(format, args...)}
	if !slices.ContainsFunc(p.lacks, func(old mark) bool { return old.text == m.text }) {
		p.lacks = append(p.lacks, m)
		p.warn("process %d: %s", p.pid, m.text)
	}
}

// now returns the time as its records have it; when they have ended, that of their end.
func (p *process) now() int64 {
	switch {
	case p.ring != nil:
		return p.ring.Now()
	case p.endNS > 0:
		return p.endNS
	}
	return time.Now().UnixNano()
}

// open begins to read a ring.
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

// greet reads what the hook says of itself. Another program in the same process may write its own, so the file gets another name.
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

// poll takes in what the process has told.
func (p *process) poll(now time.Time) {
	dead := p.life.dead() // asked before the ring is read, so that nothing comes after the last reading
	p.read(dead, now)
	if dead {
		_ = p.life.close() // there may be thousands, one after another
	}
	for file, ok := p.dumps[p.nextDump]; ok; file, ok = p.dumps[p.nextDump] {
		if !p.takeDump(file) {
			return
		}
	}
}

// read takes in what is in the ring: all that is left of it when the process is dead.
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

// keep writes what was read into the journal when it is time, and frees its room in the ring; all when the ring is at its end.
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

// conclude ends a journal that has all there is, and gives the ring back.
func (p *process) conclude() {
	p.endNS = p.ring.Now()
	err := p.ring.Close()
	p.counters = p.ring.Counters()
	if !p.kept {
		err = errors.Join(err, os.Remove(p.ringFile))
	}
	p.ring = nil
	if err := errors.Join(err, p.journal.end(p.counters)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.warn("process %d: %v", p.pid, err) // nothing is lost by it
	}
}

// count returns the counters of the ring so far.
func (p *process) count() ring.Counters {
	if p.ring != nil {
		return p.ring.Counters()
	}
	return p.counters
}

// sample takes in what NVML says of the process and its cards.
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
