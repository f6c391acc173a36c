package capture

import (
	"debug/elf"
	"testing"

	"gm/internal/capture/ring"
)

// TestFolded keeps the texts of stacks.
func TestFolded(t *testing.T) {
	s, libs := newSymbols(), new(libraries)
	for _, address := range []byte{1, 2, 1} {
		r := &ring.Record{Extra: []byte{address, 0, 0, 0, 0, 0, 0, 0}}
		if got, want := s.fold(r, libs), "0x"+string('0'+rune(address)); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if len(s.folded) != 2 {
		t.Errorf("%v", s.folded)
	}
}

// TestName names the function at an offset of a file: the last that begins there or before, unless it ended.
func TestName(t *testing.T) {
	part := func(offset, address, size uint64) *elf.Prog {
		return &elf.Prog{ProgHeader: elf.ProgHeader{Off: offset, Vaddr: address, Filesz: size}}
	}
	f := &file{
		loads:     []*elf.Prog{part(0x100, 0x1000, 0x100), part(0x200, 0x3000, 0x10)},
		functions: []elf.Symbol{{Name: "a", Value: 0x1010, Size: 0x10}, {Name: "b;c", Value: 0x1040}, {Name: "_ZN1d1eEi", Value: 0x3000, Size: 8}},
	}
	for offset, want := range map[uint64]string{
		0xff: "+0xff", 0x100: "+0x100", 0x10f: "+0x10f", 0x110: "a", 0x11f: "a", 0x120: "+0x120", 0x140: "b,c", 0x1ff: "b,c", 0x200: "d::e", 0x207: "d::e",
		0x208: "+0x208", 0x210: "+0x210",
	} {
		if got := f.name(offset); got != want {
			t.Errorf("%#x: %q, want %q", offset, got, want)
		}
	}
}
