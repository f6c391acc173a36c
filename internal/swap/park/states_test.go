package park

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"os"
	"reflect"
	"slices"
	"testing"

	"gm/internal/cuda"
	"gm/internal/cuda/driver/bystander"
)

// model is a device with a few small pieces of memory, and what should be in them.
type model struct {
	t      *testing.T
	dev    *Device
	pieces []*modelled
	serial uint64
	free   int64 // bytes of the card without them
}

type modelled struct {
	handle cuda.Handle // 0 for MemAlloc
	at     []cuda.Ptr
	word   uint64 // at each mark
}

const (
	modelSize   = 2 * mib
	modelPieces = 3
	outOfMemory = 2 // CUDA_ERROR_OUT_OF_MEMORY
	unknown     = 999
)

// marks are where the word of a piece is.
var marks = []int{0, modelSize/2 - 8, modelSize - 8}

// refusal is a call that fails: at a position of the last operation, and if onwards is set all later ones of its name in that.
type refusal struct {
	call     string
	position int
	onwards  bool
}

// modelCalls are the calls that an operation makes, which fail. Those that a device makes once are in TestFaults.
var modelCalls = map[byte][]string{
	'C': {"cuMemAddressReserve", "cuMemCreate", "cuMemMap", "cuMemSetAccess"},
	'F': {"cuCtxSynchronize", "cuMemUnmap", "cuMemRelease", "cuMemAddressFree"},
	'S': {"cuMemcpyDtoHAsync", "cuStreamSynchronize", "cuMemUnmap", "cuMemRelease"},
	'P': {"cuMemcpyDtoHAsync", "cuStreamSynchronize", "cuMemUnmap", "cuMemRelease"},
	'K': {
		"cuMemGetInfo", "cuMemCreate", "cuMemMap", "cuMemSetAccess", "cuMemcpyHtoDAsync", "cuStreamSynchronize",
		"cuMemUnmap", "cuMemRelease",
	},
}

// TestStates goes through all sequences of a few operations: create (C), free (F), write (W), sleep (S), sleep in part (P) and wake (K). In the last one of
// each sequence each call of the driver fails, at each position. After each operation each piece has a valid copy, no memory has two owners, and
// the driver has given as much as the pieces have. Then everything wakes, has its contents, and can be freed. With GM_EVERY the sequences are
// longer, in a short run shorter.
func TestStates(t *testing.T) {
	depth := 4
	switch {
	case os.Getenv("GM_EVERY") != "":
		depth = 6
	case testing.Short():
		depth = 3
	}
	m := &model{t: t, dev: open(t)}
	m.free = m.freeBytes()
	sequences, faults := 0, 0
	var extend func(sequence string)
	extend = func(sequence string) {
		sequences++
		next := m.run(sequence, "", refusal{})
		for _, call := range modelCalls[sequence[len(sequence)-1]] {
			faults += m.eachPosition(sequence, call)
		}
		if len(sequence) < depth {
			for _, op := range next {
				extend(sequence + string(op))
			}
		}
	}
	extend("C")
	t.Logf("%d sequences, %d with a call that failed", sequences, faults)
	if faults < sequences {
		t.Error("it was not tried out")
	}
}

// eachPosition runs a sequence with a refusal at each position at which there is a call, and something after it. It returns how often.
func (m *model) eachPosition(sequence, call string) (n int) {
	for position := 1; ; position++ {
		for _, onwards := range []bool{false, true} {
			before := bystander.Failed()
			m.run(sequence, []string{"", "P", "S"}[n%3], refusal{call, position, onwards})
			if bystander.Failed() == before {
				return n
			}
			n++
		}
	}
}

// run runs a sequence, whose last operation meets a refusal, then a tail, wakes and frees everything. It returns the operations that could follow
// the sequence.
func (m *model) run(sequence, tail string, f refusal) (next string) {
	for i, op := range sequence {
		if last := i == len(sequence)-1; last && f.position > 0 {
			code := outOfMemory
			if f.onwards {
				code = unknown
			}
			bystander.FailAt(f.call, f.position, f.onwards, code)
		}
		m.do(op)
		bystander.FailAt("", 0, false, 0)
		m.holds(fmt.Sprintf("%s to %d, %+v", sequence, i, f))
	}
	next = m.possible()
	for _, op := range tail {
		m.do(op)
		m.holds(fmt.Sprintf("%s, %+v, then %s", sequence, f, tail))
	}
	if err := m.dev.Wake(0); err != nil {
		m.t.Fatalf("%s, %+v: it does not wake: %v", sequence, f, err)
	}
	m.holds(fmt.Sprintf("%s, %+v, awake", sequence, f))
	for len(m.pieces) > 0 {
		m.destroy()
	}
	if n := len(m.dev.pieces) + len(m.dev.maps) + len(m.dev.allocs); n > 0 || m.freeBytes() != m.free {
		m.t.Fatalf("%s, %+v: %d things are left in the end; %d bytes free, %d before", sequence, f, n, m.freeBytes(), m.free)
	}
	return next
}

// possible returns the operations that do not wait, and do something.
func (m *model) possible() string {
	switch {
	case m.dev.asleep:
		return "SPK"
	case len(m.pieces) == 0:
		return "C"
	case len(m.pieces) == modelPieces:
		return "FWSP"
	}
	return "CFWSP"
}

// do does one thing. What fails of that which the allocator does is done again, as gm's do.
func (m *model) do(op rune) {
	switch op {
	case 'C':
		m.create()
	case 'F':
		m.destroy()
	case 'W':
		m.write(m.pieces[len(m.pieces)-1])
	case 'S':
		_, _ = m.dev.Sleep(most, most)
	case 'P':
		_, _ = m.dev.Sleep(modelSize, most)
	case 'K':
		_ = m.dev.Wake(0)
	}
}

// again makes a call that may fail until the refusal is over.
func (m *model) again(call func() error) {
	m.t.Helper()
	err := call()
	if err != nil {
		bystander.FailAt("", 0, false, 0)
		err = call()
	}
	if err != nil {
		m.t.Fatal(err)
	}
}

// create makes a piece, of MemAlloc or mapped at two addresses.
func (m *model) create() {
	u := &modelled{}
	if len(m.pieces)%2 == 0 {
		u.at = make([]cuda.Ptr, 1)
		m.again(func() (err error) { u.at[0], err = m.dev.MemAlloc(modelSize); return err })
	} else {
		u.at = make([]cuda.Ptr, 2)
		m.again(func() (err error) { u.handle, err = m.dev.Create(modelSize); return err })
		for i := range u.at {
			m.again(func() (err error) { u.at[i], err = m.dev.AddressReserve(modelSize); return err })
			m.again(func() error { return m.dev.Map(u.at[i], u.handle) })
			m.again(func() error { return m.dev.SetAccess(u.at[i], modelSize) })
		}
	}
	m.pieces = append(m.pieces, u)
	m.write(u)
}

func (m *model) write(u *modelled) {
	m.serial++
	u.word = m.serial
	for _, mark := range marks {
		m.again(func() error {
			return m.dev.MemcpyHtoD(u.at[0]+cuda.Ptr(mark), binary.LittleEndian.AppendUint64(nil, u.word))
		})
	}
}

// destroy frees the oldest piece.
func (m *model) destroy() {
	u := m.pieces[0]
	m.pieces = m.pieces[1:]
	if u.handle == 0 {
		m.again(func() error { return m.dev.MemFree(u.at[0]) })
		return
	}
	for _, at := range u.at {
		m.again(func() error { return m.dev.Unmap(at, modelSize) })
		m.again(func() error { return m.dev.AddressFree(at, modelSize) })
	}
	m.again(func() error { return m.dev.Release(u.handle) })
}

func (m *model) freeBytes() int64 {
	free, _, err := m.dev.Device.MemInfo()
	if err != nil {
		m.t.Fatal(err)
	}
	return free
}

// holds checks what is always so.
func (m *model) holds(when string) {
	m.t.Helper()
	owners := map[cuda.Handle]bool{}
	for _, p := range m.dev.pieces {
		if p.real != 0 && owners[p.real] {
			m.t.Fatalf("%s: two pieces have the memory %d", when, p.real)
		}
		owners[p.real] = p.real != 0
	}
	delete(owners, 0)
	if free := m.freeBytes(); m.free-free != int64(len(owners))*modelSize {
		m.t.Fatalf("%s: %d bytes are taken by %d pieces", when, m.free-free, len(owners))
	}
	for i, u := range m.pieces {
		m.valid(fmt.Sprintf("%s: piece %d", when, i), u)
	}
	m.apart(when)
}

// valid checks that a piece has its contents somewhere: everywhere while the device is awake.
func (m *model) valid(what string, u *modelled) {
	m.t.Helper()
	p := m.dev.maps[u.at[0]].piece
	copies := 0
	for _, at := range p.at {
		switch {
		case p.real != 0 && !p.stale && at.mapped && at.accessible:
			m.reads(what, at.p, u.word)
			copies++
		case !m.dev.asleep:
			m.t.Fatalf("%s is not at %#x: %+v", what, at.p, *p)
		}
	}
	if p.slot != nil && m.inSlot(p, u.word) {
		copies++
	} else if p.real == 0 || p.stale {
		m.t.Fatalf("%s is neither on the card nor on the host: %+v", what, *p)
	}
	if copies == 0 {
		m.t.Fatalf("%s is nowhere: %+v", what, *p)
	}
}

func (m *model) reads(what string, at cuda.Ptr, word uint64) {
	m.t.Helper()
	for _, mark := range marks {
		var got [8]byte
		if err := m.dev.Device.MemcpyDtoH(got[:], at+cuda.Ptr(mark)); err != nil {
			m.t.Fatalf("%s: %v", what, err)
		}
		if n := binary.LittleEndian.Uint64(got[:]); n != word {
			m.t.Fatalf("%s: %d at %#x, want %d", what, n, at, word)
		}
	}
}

// inSlot says whether the host has the contents of a piece.
func (m *model) inSlot(p *piece, word uint64) bool {
	found, begin := 0, 0
	for _, part := range p.slot {
		for _, mark := range marks {
			if mark >= begin && mark < begin+len(part) && binary.LittleEndian.Uint64(part[mark-begin:]) == word {
				found++
			}
		}
		begin += len(part)
	}
	return found == len(marks) && begin == modelSize
}

// apart checks that no memory of the host is that of two pieces, or of one and free.
func (m *model) apart(when string) {
	m.t.Helper()
	a := m.dev.arena
	a.mu.Lock()
	defer a.mu.Unlock()
	parts := slices.Clone(a.free)
	for _, p := range m.dev.pieces {
		parts = append(parts, p.slot...)
	}
	begin := func(part []byte) uintptr { return reflect.ValueOf(part).Pointer() }
	slices.SortFunc(parts, func(a, b []byte) int { return cmp.Compare(begin(a), begin(b)) })
	for i := 1; i < len(parts); i++ {
		if begin(parts[i-1])+uintptr(len(parts[i-1])) > begin(parts[i]) {
			m.t.Fatalf("%s: memory of the host has two owners", when)
		}
	}
}
