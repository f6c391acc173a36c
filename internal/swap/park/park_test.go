package park

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"gm/internal/cuda"
	"gm/internal/cuda/driver"
	"gm/internal/cuda/fake"
)

const (
	mib  = 1 << 20
	most = 1 << 40 // of host memory
)

func TestMain(m *testing.M) { os.Exit(fake.Rerun(m.Run)) }

func open(t *testing.T) *Device {
	t.Helper()
	l, err := driver.Load()
	if err != nil {
		t.Fatal(err)
	}
	dev, err := l.Open(0)
	if err != nil {
		t.Fatal(err)
	}
	return New(dev, -1, func() {})
}

// program is an allocator's use of a device, with what should be in its memory.
type program struct {
	t      *testing.T
	dev    *Device
	random *rand.Rand
	pieces []*used
	serial uint64
}

type used struct {
	handle cuda.Handle // 0 for MemAlloc
	size   int64
	at     []cuda.Ptr
	word   uint64 // what its memory is full of
}

func (p *program) check(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *program) create() {
	u := &used{size: (1 + p.random.Int64N(3)) * 2 * mib}
	var at cuda.Ptr
	var err error
	if p.random.IntN(3) == 0 {
		at, err = p.dev.MemAlloc(u.size)
		p.check(err)
		u.at = []cuda.Ptr{at}
	} else {
		u.handle, err = p.dev.Create(u.size)
		p.check(err)
		for range 1 + p.random.IntN(3) {
			p.mapAgain(u)
		}
	}
	p.pieces = append(p.pieces, u)
	p.write(u)
}

func (p *program) mapAgain(u *used) {
	at, err := p.dev.AddressReserve(u.size)
	p.check(err)
	p.check(p.dev.Map(at, u.handle))
	p.check(p.dev.SetAccess(at, u.size))
	u.at = append(u.at, at)
}

func (u *used) contents() []byte {
	b := make([]byte, u.size)
	for i := 0; i < len(b); i += 8 {
		binary.LittleEndian.PutUint64(b[i:], u.word+uint64(i))
	}
	return b
}

func (p *program) write(u *used) {
	p.serial++
	u.word = p.serial << 40
	p.check(p.dev.MemcpyHtoD(u.at[p.random.IntN(len(u.at))], u.contents()))
}

func (p *program) destroy(i int) {
	u := p.pieces[i]
	p.pieces[i] = p.pieces[len(p.pieces)-1]
	p.pieces = p.pieces[:len(p.pieces)-1]
	if u.handle == 0 {
		p.check(p.dev.MemFree(u.at[0]))
		return
	}
	early := p.random.IntN(2) == 0
	if early {
		p.check(p.dev.Release(u.handle))
	}
	for _, at := range u.at {
		p.check(p.dev.Unmap(at, u.size))
		p.check(p.dev.AddressFree(at, u.size))
	}
	if !early {
		p.check(p.dev.Release(u.handle))
	}
}

// verify reads all memory at all its addresses.
func (p *program) verify() {
	p.t.Helper()
	for _, u := range p.pieces {
		want, got := u.contents(), make([]byte, u.size)
		for _, at := range u.at {
			if err := p.dev.MemcpyDtoH(got, at); err != nil {
				p.t.Fatalf("%#x: %v", at, err)
			}
			if !bytes.Equal(got, want) {
				p.t.Fatalf("%d bytes at %#x are not what was written", u.size, at)
			}
		}
	}
}

// step does one thing, while all memory is here.
func (p *program) step() {
	switch n := p.random.IntN(10); {
	case n < 5 && len(p.pieces) < 6 || len(p.pieces) == 0:
		p.create()
	case n < 7:
		p.destroy(p.random.IntN(len(p.pieces)))
	default:
		p.write(p.pieces[p.random.IntN(len(p.pieces))])
	}
}

// TestRandom puts random programs to sleep at random moments, wholly or in part.
func TestRandom(t *testing.T) {
	for seed := range uint64(3) {
		p := &program{t: t, dev: open(t), random: rand.New(rand.NewPCG(seed, 1))}
		for range 40 {
			p.step()
			if p.random.IntN(4) > 0 {
				continue
			}
			before := p.dev.Usage().Here
			for range 1 + p.random.IntN(2) {
				need := p.random.Int64N(before + 4*mib)
				moved, err := p.dev.Sleep(need, most)
				p.check(err)
				if u := p.dev.Usage(); u.Here+u.Away != before || moved < min(need, u.Here+moved) {
					t.Fatalf("of %d bytes %d were moved for %d: %+v", before, moved, need, u)
				}
			}
			p.check(p.dev.Wake(0))
			if u := p.dev.Usage(); u.Here != before || u.Away != 0 {
				t.Fatalf("%d bytes came back as %+v", before, u)
			}
			p.verify()
		}
		for len(p.pieces) > 0 {
			p.destroy(0)
		}
		if u := p.dev.Usage(); u.Here != 0 || len(p.dev.maps)+len(p.dev.allocs)+len(p.dev.pieces) != 0 {
			t.Fatalf("left: %+v", u)
		}
	}
}

// TestCycles sleeps and wakes many times: nothing grows.
func TestCycles(t *testing.T) {
	p := &program{t: t, dev: open(t), random: rand.New(rand.NewPCG(1, 1))}
	for range 3 {
		p.create()
	}
	var pinned int64
	for i := range 100 {
		_, err := p.dev.Sleep(most, most)
		p.check(err)
		u := p.dev.Usage()
		if u.Here != 0 || i > 0 && u.Pinned != pinned {
			t.Fatalf("cycle %d: %+v, %d pinned before", i, u, pinned)
		}
		pinned = u.Pinned
		p.check(p.dev.Wake(0))
	}
	p.verify()
}

// TestHostRoom moves no more than may be pinned.
func TestHostRoom(t *testing.T) {
	p := &program{t: t, dev: open(t), random: rand.New(rand.NewPCG(2, 1))}
	for range 6 {
		p.create()
	}
	all := p.dev.Usage().Here
	moved, err := p.dev.Sleep(most, all/2)
	p.check(err)
	if u := p.dev.Usage(); moved == 0 || moved > all/2 || u.Pinned > all/2 || u.Away != moved {
		t.Errorf("%d of %d bytes, with room for half: %+v", moved, all, u)
	}
	p.check(p.dev.Wake(0))
	p.verify()
}

// TestPrepare pins memory ahead, for as long as it may: then a sleep pins no more.
func TestPrepare(t *testing.T) {
	p := &program{t: t, dev: open(t), random: rand.New(rand.NewPCG(7, 1))}
	for range 3 {
		p.create()
	}
	all := p.dev.Usage().Here
	p.dev.Prepare(most, func() bool { return false })
	if n := p.dev.Usage().Pinned; n != 0 {
		t.Errorf("%d bytes were pinned for a program that works", n)
	}
	p.dev.Prepare(most, func() bool { return true })
	if n := p.dev.Usage().Pinned; n != all {
		t.Errorf("%d bytes are pinned, want %d", n, all)
	}
	_, err := p.dev.Sleep(most, most)
	p.check(err)
	if u := p.dev.Usage(); u.Pinned != all || u.Away != all {
		t.Errorf("asleep: %+v", u)
	}
	p.check(p.dev.Wake(0))
	p.verify()
}

// TestPassed leaves what others use where it is.
func TestPassed(t *testing.T) {
	p := &program{t: t, dev: open(t), random: rand.New(rand.NewPCG(3, 1))}
	for range 4 {
		p.create()
	}
	u := p.pieces[1]
	if n := p.dev.Passed([]uint64{1, uint64(u.at[0]) + 5}); n != u.size {
		t.Errorf("%d bytes are others', want %d", n, u.size)
	}
	_, err := p.dev.Sleep(most, most)
	p.check(err)
	if here := p.dev.Usage().Here; here != u.size {
		t.Errorf("%d bytes are here, want %d", here, u.size)
	}
	p.check(p.dev.Wake(0))
	p.verify()
}

// TestWaits calls the device while memory is away: the call asks for it, and waits.
func TestWaits(t *testing.T) {
	d := open(t)
	asked := make(chan bool, 100)
	d.want = func() { asked <- true }
	p := &program{t: t, dev: d, random: rand.New(rand.NewPCG(4, 1))}
	p.create()
	_, err := d.Sleep(most, most)
	p.check(err)
	created := make(chan error)
	go func() {
		_, err := d.Create(2 * mib)
		created <- err
	}()
	<-asked
	select {
	case err := <-created:
		t.Fatalf("memory was created beside what is away: %v", err)
	default:
	}
	p.check(d.Wake(0))
	p.check(<-created)
}

// alone runs the rest of a test in a process of its own, whose fake driver has more environment. It says whether this is that process.
func alone(t *testing.T, environment string) bool {
	t.Helper()
	mark := "GM_TEST_ALONE=" + t.Name()
	if strings.Contains(strings.Join(os.Environ(), "\n")+"\n", mark+"\n") {
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+strings.ReplaceAll(t.Name(), "/", "$/^")+"$", "-test.v")
	cmd.Env = append(os.Environ(), mark, environment)
	if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("--- PASS: "+t.Name())) {
		t.Fatalf("%v\n%s", err, out)
	}
	return false
}

// TestShort wakes where another program has taken the memory: it fails and takes nothing. With patience it succeeds once the memory is
// there.
func TestShort(t *testing.T) {
	if !alone(t, "GM_FAKE_LIMIT="+strconv.Itoa(600*mib)) {
		return
	}
	p := &program{t: t, dev: open(t), random: rand.New(rand.NewPCG(5, 1))}
	for range 6 {
		p.create()
	}
	_, err := p.dev.Sleep(most, most)
	p.check(err)
	free, _, err := p.dev.Device.MemInfo()
	p.check(err)
	need := p.dev.Usage().Away
	other, err := p.dev.Device.Create((free - need/2) / cuda.Granularity * cuda.Granularity)
	p.check(err)
	for range 3 {
		var short *ShortError
		if err := p.dev.Wake(0); !errors.As(err, &short) || short.Need != need || short.Free >= need || !errors.Is(err, cuda.ErrOutOfMemory) {
			t.Fatalf("the error is %v", err)
		}
		if u := p.dev.Usage(); u.Here != 0 || u.Away != need {
			t.Fatalf("after a wake in vain: %+v", u)
		}
	}
	time.AfterFunc(50*time.Millisecond, func() { p.check(p.dev.Device.Release(other)) })
	p.check(p.dev.Wake(10 * time.Second))
	p.verify()
}

// TestFaults has each call of the driver fail, at several positions: then sleeping or waking fails, and the next wake brings everything
// back.
func TestFaults(t *testing.T) {
	for _, test := range []struct {
		call      string
		own       int // calls that the program makes itself
		positions int
	}{
		{"cuStreamCreate", 0, 1}, {"cuMemHostRegister", 0, 1}, {"cuMemcpyDtoHAsync", 0, 4}, {"cuMemUnmap", 0, 5}, {"cuMemRelease", 0, 4},
		{"cuStreamSynchronize", 0, 1}, {"cuMemGetInfo", 0, 3}, {"cuMemCreate", 3, 4}, {"cuMemMap", 4, 5}, {"cuMemSetAccess", 4, 5},
		{"cuMemcpyHtoDAsync", 0, 4},
	} {
		t.Run(test.call, func(t *testing.T) {
			positions := test.positions
			if testing.Short() {
				positions = min(positions, 2)
			}
			for position := 1; position <= positions; position++ {
				t.Run(strconv.Itoa(position), func(t *testing.T) { fault(t, test.call, test.own+position) })
			}
		})
	}
}

func fault(t *testing.T, call string, position int) {
	if !alone(t, fmt.Sprintf("GM_FAKE_FAIL=%s:%d=%d", call, position, 2)) {
		return
	}
	p := &program{t: t, dev: open(t), random: rand.New(rand.NewPCG(6, 1))}
	for len(p.pieces) < 3 {
		u := &used{size: 4 * mib}
		h, err := p.dev.Create(u.size)
		p.check(err)
		u.handle = h
		p.pieces = append(p.pieces, u)
		p.mapAgain(u)
		if len(p.pieces) == 3 {
			p.mapAgain(u)
		}
		p.write(u)
	}
	var failed int
	for range 4 {
		if _, err := p.dev.Sleep(most, most); err != nil {
			failed++
		}
		for tries := 0; ; tries++ {
			err := p.dev.Wake(0)
			if err == nil {
				break
			}
			if failed++; tries == 3 {
				t.Fatalf("it does not wake: %v", err)
			}
		}
		if u := p.dev.Usage(); u.Away != 0 || u.Here != 12*mib {
			t.Fatalf("%+v", u)
		}
		p.verify()
	}
	if failed != 1 {
		t.Errorf("%d failures, want 1", failed)
	}
}
