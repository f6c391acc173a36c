package capture

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gm/formats/trace"
	"gm/internal/capture/ring"
)

// Programs of a round, and how many requests for memory each makes.
var stressed = map[string]int{"many": 46000, "threads": 27600, "linked": 23}

const (
	roundTime   = 2 * time.Minute // a round may take, on a machine that is busy
	roundMemory = 512 << 20       // bytes of the heap, beyond those before
)

// TestStress records programs while their rings and the session's files are damaged, and they are killed and stopped, as chance has it: whatever
// happens to one, traces are written that can be read, and those of the others are whole. GM_STRESS is how long, such as 10m; GM_SEED repeats a round.
func TestStress(t *testing.T) {
	long, _ := time.ParseDuration(os.Getenv("GM_STRESS"))
	if text := os.Getenv("GM_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		stressRound(t, seed)
		return
	}
	seed := uint64(1)
	if long > 0 {
		seed = rand.Uint64N(1 << 40)
	}
	first := seed
	for begin := time.Now(); !t.Failed() && time.Since(begin) < max(long, 2*time.Second); seed++ {
		stressRound(t, seed)
	}
	t.Logf("%d rounds, seeds from %d on", seed-first, first)
	if t.Failed() {
		t.Logf("again with GM_SEED=%d", seed-1)
	}
}

// round is one session under stress.
type round struct {
	t        *testing.T
	seed     uint64
	rng      *rand.Rand
	session  *Session
	programs []*stressedProgram
}

// stressedProgram is a program of a round.
type stressedProgram struct {
	way    string
	cmd    *exec.Cmd
	ended  chan error
	done   bool
	harmed bool // its ring was
	killed bool
}

func stressRound(t *testing.T, seed uint64) {
	t.Helper()
	r := &round{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 7))}
	r.session, _ = sessionOf(t)
	r.session.options.Warn = func(string, ...any) {}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begin := time.Now()
	r.start()
	r.record(begin)
	r.check()
	runtime.ReadMemStats(&after)
	if took := time.Since(begin); took > roundTime || after.HeapAlloc > before.HeapAlloc+roundMemory {
		t.Errorf("seed %d: %v, heap of %d bytes", seed, took, after.HeapAlloc)
	}
	_ = r.session.Close() // its files may be damaged
	os.RemoveAll(r.session.folder)
	os.RemoveAll(r.session.rings)
}

func (r *round) start() {
	ways := []string{"many", "threads", "linked"}
	for range 2 + r.rng.IntN(3) {
		p := &stressedProgram{way: ways[r.rng.IntN(len(ways))], ended: make(chan error, 1)}
		p.cmd = exec.Command(os.Getenv("DRIVER"), p.way)
		p.cmd.Env = r.session.Environ(os.Environ())
		if err := p.cmd.Start(); err != nil {
			r.t.Fatal(err)
		}
		go func() { p.ended <- p.cmd.Wait() }()
		r.programs = append(r.programs, p)
	}
}

// record polls until all programs have ended, and does harm meanwhile.
func (r *round) record(begin time.Time) {
	for running := true; running; {
		running = false
		for _, p := range r.programs {
			select {
			case <-p.ended:
				p.done = true
			default:
			}
			running = running || !p.done
		}
		if r.rng.IntN(3) == 0 {
			r.harm(r.programs[0])
		}
		if r.rng.IntN(20) == 0 {
			r.misplace()
		}
		r.session.Poll()
		if time.Since(begin) > roundTime {
			for _, p := range r.programs {
				_ = p.cmd.Process.Kill()
			}
			r.t.Fatalf("seed %d: programs still run", r.seed)
		}
		time.Sleep(time.Millisecond)
	}
}

// harm damages the ring of a program, or ends it.
func (r *round) harm(p *stressedProgram) {
	switch r.rng.IntN(40) {
	case 0:
		p.killed = true
		_ = p.cmd.Process.Kill()
	case 1:
		_ = p.cmd.Process.Signal(syscall.SIGSTOP)
		r.session.Poll()
		_ = p.cmd.Process.Signal(syscall.SIGCONT)
	}
	if r.rng.IntN(10) == 0 {
		r.harmJournal(p)
	}
	names, _ := filepath.Glob(filepath.Join(r.session.rings, fmt.Sprintf("ring.%d.*", p.cmd.Process.Pid)))
	if len(names) == 0 || p.done {
		return
	}
	f, err := os.OpenFile(names[0], os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer f.Close()
	p.harmed = true
	switch r.rng.IntN(12) {
	case 0: // the file
		if r.rng.IntN(20) == 0 {
			_ = f.Truncate(r.rng.Int64N(5 << 20))
		}
	case 1:
		if r.rng.IntN(20) == 0 {
			_ = os.Remove(names[0])
		}
	case 2, 3: // head, tail, closed, counters
		r.scribble(f, 4096+8*r.rng.Int64N(24), r.word())
	case 4, 5, 6:
		r.record64(f)
	default:
		for range r.rng.IntN(100) {
			r.scribble(f, 8192+r.rng.Int64N(ring.Slots*64-8), r.word())
		}
	}
}

// harmJournal damages what was kept of a program.
func (r *round) harmJournal(p *stressedProgram) {
	names, _ := filepath.Glob(filepath.Join(r.session.journals(), fmt.Sprintf("journal.%d.*", p.cmd.Process.Pid)))
	for _, name := range names {
		if f, err := os.OpenFile(name, os.O_RDWR, 0); err == nil {
			info, err := f.Stat()
			if err == nil && info.Size() > 8 {
				p.harmed = true
				r.scribble(f, r.rng.Int64N(info.Size()-8), r.word())
			}
			_ = f.Close()
		}
	}
}

// word returns a number of some kind.
func (r *round) word() uint64 {
	switch r.rng.IntN(4) {
	case 0:
		return 0
	case 1:
		return 1 << r.rng.IntN(64)
	case 2:
		return uint64(r.rng.IntN(100000))
	}
	return r.rng.Uint64()
}

func (r *round) scribble(f *os.File, at int64, word uint64) {
	_, _ = f.WriteAt(binary.LittleEndian.AppendUint64(nil, word), at)
}

// record64 writes records with any contents where the next ones belong.
func (r *round) record64(f *os.File) {
	var head [8]byte
	_, _ = f.ReadAt(head[:], 4096)
	from := binary.LittleEndian.Uint64(head[:])
	for i := range uint64(r.rng.IntN(1000)) {
		slot := binary.LittleEndian.AppendUint64(nil, from+i+1)
		for len(slot) < 64 {
			slot = binary.LittleEndian.AppendUint64(slot, r.word())
		}
		slot[62], slot[63] = byte(r.rng.IntN(28)), byte(r.rng.IntN(3)*r.rng.IntN(100))
		_, _ = f.WriteAt(slot, 8192+int64((from+i)%ring.Slots)*64)
	}
}

// misplace puts into the folders what does not belong there, under the number of a process that is not there.
func (r *round) misplace() {
	names := []string{"ring.%d.1", "history.%d.0.pickle", "torch.%d.json", "taken.%d.pickle", "ring.%d", "%d"}
	name := fmt.Sprintf(names[r.rng.IntN(len(names))], 77777777+r.rng.IntN(3))
	folder := []string{r.session.folder, r.session.rings}[r.rng.IntN(2)]
	name = filepath.Join(folder, name)
	switch r.rng.IntN(4) {
	case 0:
		_ = os.Mkdir(name, 0o700)
	case 1:
		_ = syscall.Mkfifo(name, 0o600)
	case 2:
		_ = os.Symlink("/dev/zero", name)
	default:
		junk := make([]byte, r.rng.IntN(10000))
		for i := range junk {
			junk[i] = byte(r.rng.Uint32())
		}
		if f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err == nil {
			_, _ = f.Write(junk)
			_ = f.Close()
		}
	}
}

// check writes the traces, twice: from what is known, and as Recover does.
func (r *round) check() {
	outputs, err := r.session.Outputs("%p")
	if err != nil {
		r.t.Fatalf("seed %d: %v", r.seed, err)
	}
	r.compare(outputs)
	r.session.Keep()
	_ = r.session.Close()
	again, err := Recover(r.session.folder, func(string, ...any) {})
	if err != nil {
		r.t.Fatalf("seed %d: %v", r.seed, err)
	}
	if outputs, err = again.Recovered("%p"); err != nil {
		r.t.Fatalf("seed %d: %v", r.seed, err)
	}
	r.compare(outputs)
	if err := again.Close(); err != nil {
		r.t.Errorf("seed %d: %v", r.seed, err)
	}
}

// compare reads the traces, and looks whether those of the programs that nothing happened to are whole.
func (r *round) compare(outputs []Output) {
	traces := map[int]captive{}
	for _, o := range outputs {
		traces[o.PID] = read(r.t, o)
	}
	for i, p := range r.programs {
		c, ok := traces[p.cmd.Process.Pid]
		switch {
		case p.harmed || p.killed && !ok:
		case !ok:
			r.t.Errorf("seed %d: no trace of program %d, %s", r.seed, i, p.way)
		case p.killed:
			if n := c.allocs(); n > stressed[p.way] {
				r.t.Errorf("seed %d: %d requests of program %d, %s", r.seed, n, i, p.way)
			}
		case c.allocs() != stressed[p.way] || c.meta.Incomplete != "":
			r.t.Errorf("seed %d: %d requests of program %d, %s; incomplete: %q", r.seed, c.allocs(), i, p.way, c.meta.Incomplete)
		}
		if ok && !p.harmed && !strings.HasSuffix(c.meta.Command, p.way) {
			r.t.Errorf("seed %d: command %q", r.seed, c.meta.Command)
		}
	}
	for _, c := range traces {
		for _, e := range c.rows {
			if e.Op == trace.OpMark && c.meta.Incomplete == "" && !strings.HasPrefix(c.texts(e.Tag), "clock") {
				r.t.Errorf("seed %d: a mark %q, and nothing is incomplete", r.seed, c.texts(e.Tag))
			}
		}
	}
}
