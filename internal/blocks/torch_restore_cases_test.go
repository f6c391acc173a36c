package blocks

import (
	"fmt"
	"strings"
	"testing"

	"gm/internal/cuda/sim"
	"gm/internal/torch/allocconf"
)

// restoreCase is segments as a recording has them, and the blocks that they must become.
//
// A segment is ADDRESS+SIZE in KiB, followed by x for mapped pages of an expandable segment, /STREAM and %POOL. After it stand its live blocks as
// ADDRESS:SIZE, or ADDRESS:SIZE:BLOCK if the bytes of the block are known. In the picture a segment is SIZE[s][x], s for small blocks, and then the
// blocks by size, =SIZE if in use. An x in front of a segment begins another reserved range of addresses.
type restoreCase struct {
	about    string
	segments string
	want     string
}

// readSegments reads the notation of a restoreCase.
func readSegments(t *testing.T, text string) (all []Segment) {
	t.Helper()
	for _, word := range strings.Fields(text) {
		var at, size, block int64
		if n, _ := fmt.Sscanf(word, "%d:%d:%d", &at, &size, &block); n >= 2 {
			s := &all[len(all)-1]
			s.Live = append(s.Live, Held{Addr: uint64(at) << 10, Size: size << 10, Block: block << 10})
			continue
		}
		s := Segment{}
		word, pool, _ := strings.Cut(word, "%")
		_, _ = fmt.Sscan(pool, &s.Pool)
		word, stream, _ := strings.Cut(word, "/")
		_, _ = fmt.Sscan(stream, &s.Stream)
		word, s.Expandable = strings.CutSuffix(word, "x")
		if _, err := fmt.Sscanf(word, "%d+%d", &at, &size); err != nil {
			t.Fatal(err)
		}
		s.Addr, s.Size = uint64(at)<<10, size<<10
		all = append(all, s)
	}
	return all
}

// restorePicture draws the blocks of an allocator.
func restorePicture(a *Torch) string {
	var words []string
	last := int32(none)
	for _, s := range a.Segments() {
		word := fmt.Sprint(s.Size >> 10)
		if s.Small {
			word += "s"
		}
		if s.Expandable {
			word += "x"
		}
		for i := range a.store.blocks { // the range that the segment lies in
			if b := a.store.at(int32(i)); s.Expandable && b.ptr == s.Address && b.segment != last {
				last = b.segment
				word = "x " + word
			}
		}
		words = append(words, word)
		for _, b := range s.Blocks {
			if b.State == BlockUsed {
				words = append(words, fmt.Sprintf("=%d", b.Size>>10))
			} else {
				words = append(words, fmt.Sprint(b.Size>>10))
			}
		}
	}
	return strings.Join(words, " ")
}

func playRestore(t *testing.T, cases []restoreCase) {
	for _, c := range cases {
		t.Run(c.about, func(t *testing.T) {
			a, err := NewTorch(sim.New(256<<20, sim.CostTable{}), allocconf.Default())
			if err != nil {
				t.Fatal(err)
			}
			segments := readSegments(t, c.segments)
			ptrs, err := a.Restore(segments)
			if err != nil {
				if c.want == "" || !strings.Contains(err.Error(), c.want) {
					t.Errorf("error %q, want %q", err, c.want)
				}
				return
			}
			if got := restorePicture(a); got != c.want {
				t.Errorf("%s\nbecomes %s\nwant    %s", c.segments, got, c.want)
			}
			n := 0
			for _, s := range segments {
				for _, h := range s.Live {
					if b, ok := a.index.Get(ptrs[n]); !ok || a.store.at(b).ptr != ptrs[n] {
						t.Errorf("the block at %#x is not at %#x", h.Addr, ptrs[n])
					}
					n++
				}
			}
			if len(ptrs) != n {
				t.Errorf("%d addresses of %d blocks", len(ptrs), n)
			}
		})
	}
}

// TestRestoreBlocks: what lies between live blocks is free if it could have been split off, or if the bytes of the block before it are known.
func TestRestoreBlocks(t *testing.T) {
	playRestore(t, []restoreCase{
		{"nothing is live", "0+20480", "20480 20480"},
		{"a block at the start", "0+2048 0:4", "2048s =4 2044"},
		{"behind a gap", "0+2048 100:4", "2048s 100 =4 1944"},
		{"all of the segment", "0+2048 0:1024 1024:1024", "2048s =1024 =1024"},
		{"the size is rounded up", "0+2048 0:1 1:1", "2048s =1 =1 2046"},
		{"a large gap behind a large block is free", "0+20480 0:2000", "20480 =2000 18480"},
		{"a gap of 1 MiB belongs to it", "0+20480 0:19456", "20480 =20480"},
		{"one above is free", "0+20480 0:19455", "20480 =19455 1025"},
		{"a small gap between blocks belongs to the first", "0+20480 0:2000 2500:2000", "20480 =2500 =2000 15980"},
		{"a large one is free", "0+20480 0:2000 4000:2000", "20480 =2000 2000 =2000 14480"},
		{"a gap behind a small block is free", "0+2048 0:4 5:4", "2048s =4 1 =4 2039"},
		{"a gap behind a known block is free", "0+20480 0:2000:2200 2500:2000:2100", "20480 =2200 300 =2100 15880"},
		{"and at the end", "0+20480 0:20000:20100", "20480 =20100 380"},
		{"a known block without a gap", "0+20480 0:2000:2500 2500:17000:17980", "20480 =2500 =17980"},
		{"a known block of less than its request", "0+20480 0:2000:1000", "20480 =2000 18480"},
		{"a known block that reaches into the next", "0+20480 0:2000:4000 3000:2000", "20480 =3000 =2000 15480"},
		{"several segments", "0+2048 8:4 20480+20480/1 20480:3000", "2048s 8 =4 2036 20480 =3000 17480"},
		{"two blocks at one address", "0+20480 0:2000 0:2000", "two live blocks"},
		{"a gap of pages is free from 512 bytes on", "0+20480x 0:20000", "x 20480x =20000 480"},
	})
}

// TestRestorePools: a segment is of small blocks if its first one is, or, if none is live, by its size.
func TestRestorePools(t *testing.T) {
	playRestore(t, []restoreCase{
		{"a small block in a large segment", "0+20480 0:1024", "20480s =1024 19456"},
		{"a block above 1 MiB", "0+20480 0:1025", "20480 =1025 19455"},
		{"2 MiB without a block", "0+2048", "2048s 2048"},
		{"4 MiB without a block", "0+4096", "4096 4096"},
		{"2 MiB pages", "0+2048x", "x 2048sx 2048"},
		{"4 MiB of pages", "0+4096x", "x 4096sx 4096"},
		{"20 MiB of pages", "0+20480x", "x 20480x 20480"},
		{"20 MiB of pages with a small block", "0+20480x 0:4", "x 20480sx =4 20476"},
	})
}

// TestRestorePages: mapped pages belong to one range of addresses if stream, pool and size of pages allow it and the device is as large as all of it
// (256 MiB). What is not mapped between them stays so.
func TestRestorePages(t *testing.T) {
	playRestore(t, []restoreCase{
		{"neighbours", "0+20480x 20480+20480x", "x 40960x 40960"},
		{"with a hole", "0+20480x 40960+20480x", "x 20480x 20480 20480x 20480"},
		{"with blocks", "0+20480x 2:2000 40960+20480x 40960:3000", "x 20480x 2 =2000 18478 20480x =3000 17480"},
		{"of two streams", "0+20480x/1 40960+20480x/2", "x 20480x 20480 x 20480x 20480"},
		{"of two pools", "0+20480x%1 40960+20480x%2", "x 20480x 20480 x 20480x 20480"},
		{"of two sizes of pages", "0+20480x 40960+2048x", "x 20480x 20480 x 2048sx 2048"},
		{"beside a segment", "0+20480x 40960+20480", "x 20480x 20480 20480 20480"},
		{"before it", "0+20480 40960+20480x", "20480 20480 x 20480x 20480"},
		{"three in a row and one apart", "0+2048x 4096+2048x 8192+2048x 8192+2048x/1", "x 2048sx 2048 2048sx 2048 2048sx 2048 x 2048sx 2048"},
		{"as far apart as the device is large", "0+2048x 260096+2048x", "x 2048sx 2048 2048sx 2048"},
		{"farther apart", "0+2048x 262144+2048x", "x 2048sx 2048 x 2048sx 2048"},
		{"not whole pages", "0+20480x 0:2000 40960+2048x 40960:2000", "not whole pages"},
		{"at no page's address", "0+20480x 30720+20480x", "not whole pages"},
		{"more than the device has", "0+204800x 204800+102400x", "out of memory"},
	})
}
