package blocks

import (
	"fmt"
	"strings"
	"testing"

	"gm/internal/cuda"
)

// TestGMLakeCode holds each choice of the published code.
func TestGMLakeCode(t *testing.T) {
	const any = "fragLimit=2MiB"
	playLake(t, "gmlake-code", []lakeCase{
		{"a small segment is of 20 MiB", any, 0, "a=4", "4=a 16", 20},
		{"from 10 MiB on a segment is as large as asked", any, 0, "a=10", "10=a", 10},
		{"up to 1 MiB PyTorch's allocator serves", any, 0, "a=1 b=2", "2=b 18", 20},
		{"the smallest free block that is large enough, split", any, 0, "a=30 b=20 c=24 -a -b -c d=14", "30 24 14=d 6", 74},
		{"freed blocks join their neighbours", any, 0, "a=20 -a b=6 c=6 d=8 -b -d -c", "20", 20},
		{"stitched before there is new memory, the largest first, the last one split", any, 0, "a=10 b=14 c=12 -a -b -c d=22",
			"10 14=d 8=d 4 s22=d", 36},
		{"not for requests below fragLimit", "fragLimit=24MiB", 0, "a=12 b=12 -a -b c=22", "12 12 22=c", 46},
		{"for a request at it", "fragLimit=24MiB", 0, "a=12 b=12 -a -b c=24", "12=c 12=c s24=c", 24},
		{"defragLevel 1: only where the device is full", any + ",defragLevel=1", 0, "a=12 b=12 -a -b c=24", "12 12 24=c", 48},
		{"defragLevel 1: the device is full", any + ",defragLevel=1", 34, "a=12 b=12 -a -b c=24", "12=c 12=c s24=c", 24},
		{"defragLevel 2: only after the cache was emptied", any + ",defragLevel=2", 34, "a=12 b=12 -a -b c=24", "24=c", 48},
		{"defragLevel 2: where that was not enough", any + ",defragLevel=2", 46, "a=20 b=20 -a -b c=12 d=12 e=16", "12=c 8=e 12=d 8=e s16=e", 40},
		{"a primitive block before a stitched one", any, 0, "a=10 b=12 -a -b c=22 d=30 -c -d e=22", "10 12 22=e 8 s22", 52},
		{"a stitched block that is idle", any, 0, "a=10 b=12 -a -b c=22 -c d=22", "10=d 12=d s22=d", 22},
		{"not one with a chunk in use", any, 0, "a=10 b=12 -a -b c=22 -c d=12 e=22", "10 12=d 22=e s22", 44},
		{"one of reuseLimit times the size, from its front", any + ",reuseLimit=1.5", 0, "a=10 b=14 -a -b c=24 -c d=16", "14=d 2=d 8 s24=d", 24},
		{"not one above reuseLimit", any + ",reuseLimit=1.4", 0, "a=10 b=14 -a -b c=24 -c d=16", "14=d 2=d 8 s24 s16=d", 24},
		{"the smallest that is large enough", any, 0, "a=10 b=12 -a -b c=22 d=14 e=16 -d -e f=30 -c -f g=20", "12=g 14 16 8=g 2 s22=g s30", 52},
		{"its front is free again", any, 0, "a=10 b=14 -a -b c=24 -c d=16 -d e=24", "14=e 10=e s24=e", 24},
		{"within autoGC all stitched blocks stay", any + ",reuseLimit=1", 0, "a=10 b=12 -a -b c=22 -c d=16", "12=d 4=d 6 s22 s16=d", 22},
		{"above it those in use stay", any + ",reuseLimit=1,autoGC=0", 0, "a=10 b=12 -a -b c=22 -c d=16", "12=d 4=d 6 s16=d", 22},
		{"Empty leaves what is in use", any, 0, "a=10 b=12 d=14 -a -b -d c=22 drop", "14=c 8=c 4 s22=c", 36},
		{"streams share nothing", any, 0, "a=10 b=12 -a -b c=22@1", "10 12 22=c", 44},
		{"no more blocks than are needed", any, 0, "a=10 b=12 c=12 -a -b -c d=24", "10 12=d 12=d s24=d", 34},
		{"at autoGC idle stitched blocks stay", any + ",autoGC=1", 0, "a=10 b=14 -a -b c=24 -c d=500 e=500 -d -e f=1000", "10 14 500=f 500=f s24 s1000=f", 1024},
		{"above autoGC they go", any + ",autoGC=1", 0, "a=10 b=14 -a -b c=24 -c d=500 e=502 -d -e f=1002", "10 14 500=f 502=f s1002=f", 1026},
		{"what was dropped is not dropped again", any, 0, "a=10 b=12 -a -b c=22 -c drop drop d=10", "10=d", 32},
		{"what was dropped does not count as a user of chunks", any + ",reuseLimit=1,autoGC=0", 0, "a=10 b=12 -a -b c=22 -c d=16 -d f=12 e=16",
			"16=e 12=f 10 s16", 38},
		{"all of the device", any, 24, "a=24", "24=a", 24},
	})
}

func (g *GMLakeCode) picture(names map[cuda.Ptr]string) string {
	users := map[int32]string{}
	var stitched []string
	for _, f := range g.stitched {
		if len(f.chunks) == 0 {
			continue
		}
		for _, c := range f.chunks[:f.used] {
			users[g.chunks[c].owner] = names[f.ptr]
		}
		stitched = append(stitched, fmt.Sprintf("s%d%s", f.size()>>20, tenantOf(names[f.ptr], false)))
	}
	var all []string
	for _, head := range g.store.heads() {
		for id := head; id != none; id = g.store.at(id).next {
			b := g.store.at(id)
			all = append(all, fmt.Sprintf("%d%s", b.size>>20, tenantOf(names[b.ptr]+users[id], b.used)))
		}
	}
	return strings.Join(append(all, stitched...), " ")
}
