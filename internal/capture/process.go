package capture

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"gm/formats/column"
	"gm/formats/trace"
	"gm/internal/capture/ring"
	"gm/internal/torch"
)

// process is a traced process, or what it was until it executed another program.
type process struct {
	pid    int
	folder string
	fd     int  // of the process; -1 when it is gone, or the system has no such thing
	gone   bool // it is dead

	ring        *ring.Ring // nil until it touches CUDA
	interpreter *interpreter
	driver      *spool
	samples     map[int32]processSamples

	greeting greeting
	history  *torch.Join     // nil until there is a dump
	texts    *column.Strings // of the history
	dumps    map[int]string  // files to take in, by number
	nextDump int
	drain    func() error // empties all rings: a dump may be long, and their processes must not wait for its end
	failed   error        // why the history ends early
	headless bool         // the history had gone round when it was first dumped
	live     account
}

// greeting is what the Python hook says of itself.
type greeting struct {
	Torch   string `json:"torch"`
	History string `json:"history"` // "on", or why it is not
	Ring    int    `json:"ring"`    // entries of a device that PyTorch keeps
}

func newProcess(pid int, folder string, cards *cards) (*process, error) {
	fd, err := unix.PidfdOpen(pid, 0) // of Linux 5.3, and not in every container
	gone := errors.Is(err, unix.ESRCH)
	driver, err := newSpool(folder)
	if err != nil {
		return nil, err
	}
	texts := column.NewStrings()
	return &process{
		pid: pid, folder: folder, fd: fd, gone: gone, interpreter: newInterpreter(driver, asker{cards, pid}), driver: driver,
		samples: map[int32]processSamples{}, dumps: map[int]string{}, texts: texts, live: newAccount(texts),
	}, nil
}

func (p *process) open(ringFile string) error {
	r, err := ring.Open(ringFile)
	if err != nil {
		return err
	}
	p.ring = r
	return os.Remove(ringFile)
}

// greet reads what the hook says of itself, and removes the file: another program in the same process may write its own.
func (p *process) greet(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &p.greeting); err != nil {
		return err
	}
	return os.Remove(file)
}

// dead tells whether the process is gone.
func (p *process) dead() bool {
	switch {
	case p.gone:
	case p.fd < 0:
		p.gone = errors.Is(unix.Kill(p.pid, 0), unix.ESRCH)
	default:
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}}, 0)
		p.gone = err == nil && n == 1
	}
	return p.gone
}

// poll takes in what the process has told.
func (p *process) poll() error {
	dead := p.dead() // asked before the ring is read, so that nothing comes after the last reading
	if p.ring != nil {
		if err := p.read(dead); err != nil {
			return err
		}
		if dead {
			if err := p.release(); err != nil {
				return err
			}
		}
	}
	for file, ok := p.dumps[p.nextDump]; ok; file, ok = p.dumps[p.nextDump] {
		if err := p.takeDump(file); err != nil {
			return err
		}
	}
	return nil
}

func (p *process) read(dead bool) error {
	var failed error
	visit := func(r *ring.Record) {
		if failed == nil {
			failed = p.interpreter.take(r)
		}
	}
	if dead {
		p.ring.Finish(visit)
	} else {
		p.ring.Read(visit)
	}
	return failed
}

// meanwhile is a reader that does something else before each reading.
type meanwhile struct {
	io.Reader
	do func() error
}

func (m meanwhile) Read(into []byte) (int, error) {
	if err := m.do(); err != nil {
		return 0, err
	}
	return m.Reader.Read(into)
}

// takeDump takes in a dump of PyTorch's history and removes it. One that cannot be read ends the history.
func (p *process) takeDump(file string) error {
	delete(p.dumps, p.nextDump)
	p.nextDump++
	defer os.Remove(file)
	if p.failed != nil {
		return nil
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	first := p.history == nil
	if first {
		p.history = torch.NewJoin(p.texts)
	}
	entries := map[int32]int{}
	p.history.Fresh = func(e trace.Event) {
		entries[e.Device]++
		p.live.framework.Add(e)
	}
	p.failed = p.history.Add(bufio.NewReaderSize(meanwhile{f, p.drain}, 1<<20), filepath.Base(file))
	for _, n := range entries {
		p.headless = p.headless || first && n >= p.greeting.Ring && p.greeting.Ring > 0
	}
	return nil
}

// sample writes what NVML says of the process and its cards.
func (p *process) sample(c *cards) error {
	if p.ring == nil || p.dead() {
		return nil
	}
	return c.write(p.driver, p.pid, p.interpreter.devices, p.samples)
}

// marks reads the step marks that the Python hook wrote.
func (p *process) marks() ([]mark, error) {
	f, err := os.Open(filepath.Join(p.folder, "marks."+strconv.Itoa(p.pid)))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer f.Close()
	var marks []mark
	for lines := bufio.NewScanner(f); lines.Scan(); {
		at, text, ok := strings.Cut(lines.Text(), " ")
		ns, err := strconv.ParseInt(at, 10, 64)
		if !ok || err != nil {
			break // cut short
		}
		if n := len(marks); n > 0 {
			ns = max(ns, marks[n-1].timeNS)
		}
		marks = append(marks, mark{ns, text})
	}
	return marks, nil
}

// release gives back what only a process that lives needs: there may be thousands, one after another. A ring that is closed the process
// writes to no more.
func (p *process) release() error {
	var errs []error
	if p.ring != nil {
		errs = append(errs, p.ring.Close())
	}
	if p.fd >= 0 {
		errs = append(errs, unix.Close(p.fd))
		p.fd = -1
	}
	return errors.Join(errs...)
}

func (p *process) close() error {
	errs := []error{p.release()}
	if p.history != nil {
		errs = append(errs, p.history.Close())
	}
	if err := errors.Join(append(errs, p.driver.close())...); err != nil {
		return fmt.Errorf("process %d: %w", p.pid, err)
	}
	return nil
}
