package capture

import (
	"debug/elf"
	"fmt"
	"slices"
	"strings"

	"github.com/ianlancetaylor/demangle"

	"gm/internal/capture/ring"
)

const (
	maxFolded = 1 << 16 // stacks whose text is cached
	maxFrames = 64      // of a stack; the preload library records fewer
)

// symbols names the functions of native stacks.
type symbols struct {
	files  map[string]*file  // by path
	folded map[string]string // texts of stacks, by their addresses
	frames []uint64
}

// file holds the functions of an ELF file.
type file struct {
	loads     []*elf.Prog
	functions []elf.Symbol // by address
}

func newSymbols() *symbols { return &symbols{files: map[string]*file{}, folded: map[string]string{}} }

// fold returns the folded stack of a record, outermost frame first, each as "function (library)".
func (s *symbols) fold(r *ring.Record, libs *libraries) string {
	if text, ok := s.folded[string(r.Extra)]; ok {
		return text
	}
	s.frames = r.Frames(s.frames)
	s.frames = s.frames[:min(len(s.frames), maxFrames)]
	parts := make([]string, 0, len(s.frames))
	for _, address := range slices.Backward(s.frames) {
		lib := libs.find(address)
		switch {
		case lib != nil && strings.HasSuffix(lib.path, "/"+shimName):
			continue
		case lib == nil || lib.path == "":
			parts = append(parts, fmt.Sprintf("%#x", address))
			continue
		}
		name := s.file(lib.path).name(address - 1 - lib.from + lib.offset) // the call itself, not the instruction after it
		parts = append(parts, fmt.Sprintf("%s (%s)", name, lib.path[strings.LastIndexByte(lib.path, '/')+1:]))
	}
	text := strings.Join(parts, ";")
	if len(s.folded) >= maxFolded {
		clear(s.folded)
	}
	s.folded[string(r.Extra)] = text
	return text
}

// file returns the symbols of a file, and caches them. A file that cannot be read has none.
func (s *symbols) file(path string) *file {
	if f := s.files[path]; f != nil {
		return f
	}
	f := &file{}
	s.files[path] = f
	in, err := openRegular(path)
	if err != nil {
		return f
	}
	defer in.Close()
	e, err := elf.NewFile(in)
	if err != nil {
		return f
	}
	for _, p := range e.Progs {
		if p.Type == elf.PT_LOAD {
			f.loads = append(f.loads, p)
		}
	}
	static, _ := e.Symbols()
	dynamic, _ := e.DynamicSymbols()
	for _, sym := range slices.Concat(static, dynamic) {
		if elf.ST_TYPE(sym.Info) == elf.STT_FUNC && sym.Value != 0 {
			f.functions = append(f.functions, sym)
		}
	}
	slices.SortFunc(f.functions, func(a, b elf.Symbol) int {
		switch {
		case a.Value < b.Value:
			return -1
		case a.Value > b.Value:
			return 1
		}
		return 0
	})
	return f
}

// name returns the function at an offset of the file, or the offset as text if no function is known there.
func (f *file) name(offset uint64) string {
	for _, p := range f.loads {
		if offset < p.Off || offset-p.Off >= p.Filesz {
			continue
		}
		address := offset - p.Off + p.Vaddr
		i, _ := slices.BinarySearchFunc(f.functions, address, func(s elf.Symbol, at uint64) int {
			if s.Value <= at {
				return -1
			}
			return 1
		})
		if i > 0 && (f.functions[i-1].Size == 0 || address < f.functions[i-1].Value+f.functions[i-1].Size) {
			return clean(demangle.Filter(f.functions[i-1].Name, demangle.NoParams))
		}
		break
	}
	return fmt.Sprintf("+%#x", offset)
}

// clean replaces semicolons, which separate the frames of a folded stack.
func clean(name string) string { return strings.ReplaceAll(name, ";", ",") }
