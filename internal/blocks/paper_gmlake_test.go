package blocks

import (
	"testing"

	"gm/internal/cuda/sim"
)

// TestGMLakeStates holds each state of Algorithm 1 and Figure 9, and each choice within it.
func TestGMLakeStates(t *testing.T) {
	playLake(t, "gmlake", []lakeCase{
		{"S1, a primitive block", "", 0, "a=8 b=12 -b -a c=8", "p0:8=c p1:12", 20},
		{"S1, the exact one of several", "", 0, "a=8 b=10 c=12 -a -b -c d=10", "p0:8 p1:10=d p2:12", 30},
		{"S1, a stitched block", "", 0, "a=10 -a b=4 -b c=10", "p1:4=c p2:6=c s0:p1+p2=c", 10},
		{"S1, a stitched block before a primitive one", "", 0, "a=10 b=10 -a c=4 -c -b d=10", "p1:10 p2:4=d p3:6=d s0:p2+p3=d", 20},
		{"S1, not a stitched block with a part in use", "", 0, "a=10 -a b=4 c=10", "p1:4=b p2:6=c p3:4=c s0:p1+p2 s1:p2+p3=c", 14},
		{"S1, nor one of which a part was freed", "", 0, "a=10 -a b=4 c=6 -b d=10", "p1:4=d p2:6=c p3:6=d s0:p1+p2 s1:p1+p3=d", 16},
		{"S1, a stitched block serves its size only", "", 0, "a=10 -a b=4 -b c=8",
			"p2:6=c p3:2=c p4:2 s0:p3+p4+p2 s1:p3+p4 s2:p2+p3=c", 10},
		{"S2, the smallest that is larger", "", 0, "a=20 b=12 c=16 -a -b -c d=8", "p0:20 p2:16 p3:8=d p4:4 s0:p3+p4", 48},
		{"S2, a primitive block and no larger stitched one", "", 0, "a=14 b=12 -b -a c=4 -c d=10",
			"p2:4 p3:8 p4:10=d p5:4 s0:p2+p3 s1:p4+p5", 26},
		{"S3, the largest first, the last one split and its halves stitched", "", 0, "a=4 b=8 c=6 -a -b -c d=12",
			"p0:4 p1:8=d p3:4=d p4:2 s0:p3+p4 s1:p1+p3=d", 18},
		{"S3, the halves are found again", "", 0, "a=4 b=8 c=6 -a -b -c d=12 -d e=6", "p0:4 p1:8 p3:4=e p4:2=e s0:p3+p4=e s1:p1+p3", 18},
		{"S3, no more blocks than are needed", "", 0, "a=4 b=4 c=4 -a -b -c d=8", "p0:4 p1:4=d p2:4=d s0:p2+p1=d", 12},
		{"S3, no split where the sum is exact", "", 0, "a=8 b=4 -a -b c=12", "p0:8=c p1:4=c s0:p0+p1=c", 12},
		{"S4, what is free and new memory for the rest", "", 0, "a=6 b=2 -a -b c=10", "p0:6=c p1:2=c p2:2=c s0:p0+p1+p2=c", 10},
		{"S4, nothing is free", "", 0, "a=6 b=10", "p0:6=a p1:10=b", 16},
		{"S4, sizes are rounded to chunks", "", 0, "a=3 -a b=4", "p0:4=b", 4},
		{"S5, the device is full", "", 16, "a=10 b=8!", "p0:10=a", 10},
		{"S5, only after what is idle was released", "", 20, "a=6 -a b=18@1", "p1:18=b", 24},
		{"freed blocks are not merged", "", 0, "a=10 -a b=4 c=6 -b -c", "p1:4 p2:6 s0:p1+p2", 10},
		{"a split part stays in its stitched blocks", "", 0, "a=6 b=4 -a -b c=10 -c d=2 -d e=10", "p0:6=e p2:2=e p3:2=e s0:p0+p2+p3=e s1:p2+p3", 10},
		{"a split part in use keeps them from use", "", 0, "a=6 b=4 -a -b c=10 -c d=2 e=10",
			"p0:6=e p2:2=d p3:2=e p4:2=e s0:p0+p2+p3 s1:p2+p3 s2:p0+p3+p4=e", 12},
		{"streams share nothing", "", 0, "a=8 -a b=8@1 c=16@1", "p0:8 p1:8=b p2:16=c", 32},
		{"private pools are left to PyTorch's allocator", "", 0, "a=8 -a b=8%1", "p0:8", 8},
		{"below a chunk PyTorch's allocator serves", "", 0, "a=1 b=2", "p0:2=b", 2},
		{"Empty leaves what is in use", "", 0, "a=10 b=8 -a c=4 drop", "p1:8=b p2:4=c p3:6 s0:p2+p3", 18},
		{"all of the device", "", 24, "a=24", "p0:24=a", 24},
		{"Empty drops what is idle", "", 0, "a=10 b=8 -a c=4 -c drop", "p1:8=b", 18},
	})
}

// TestGMLakeLimits holds the limits of section 4.2.3, and the limit of the published code.
func TestGMLakeLimits(t *testing.T) {
	const play = "a=10 b=12 c=16 -a d=4 -d -b e=8 -e -c "
	playLake(t, "gmlake", []lakeCase{
		{"a block at the limit is split", "frag_limit=8MiB", 0, "a=8 -a b=4", "p1:4=b p2:4 s0:p1+p2", 8},
		{"a block below it is handed out whole", "frag_limit=8MiB", 0, "a=6 -a b=4", "p0:6=b", 6},
		{"a block below it is not stitched", "frag_limit=8MiB", 0, "a=6 b=8 -a -b c=12", "p0:6 p1:8=c p2:4=c s0:p1+p2=c", 18},
		{"a block at it is stitched and split", "frag_limit=8MiB", 0, "a=8 b=10 -a -b c=14", "p1:10=c p2:4=c p3:4 s0:p2+p3 s1:p1+p2=c", 18},
		{"a small request below it finds its size", "frag_limit=8MiB", 0, "a=4 b=6 -a -b c=4", "p0:4=c p1:6", 10},
		{"nothing is stitched for a small request", "request_limit=8MiB", 0, "a=4 b=2 -a -b c=6", "p0:4 p1:2 p2:6=c", 12},
		{"a split for it leaves no stitched block", "request_limit=8MiB", 0, "a=10 -a b=4", "p1:4=b p2:6", 10},
		{"small blocks are stitched for a large one", "request_limit=8MiB", 0, "a=4 b=4 -a -b c=8", "p0:4=c p1:4=c s0:p1+p0=c", 8},
		{"a split for a large one leaves a stitched block", "request_limit=8MiB", 0, "a=10 -a b=8", "p1:8=b p2:2 s0:p1+p2", 10},
		{"below the limit of addresses all stay", "stitch_limit=38MiB", 0, play + "f=14",
			"p3:4 p4:6 p5:8 p6:4 p7:14=f p8:2 s0:p3+p4 s1:p5+p6 s2:p7+p8", 38},
		{"above it the one least recently used is dropped", "stitch_limit=37MiB", 0, play + "f=14",
			"p3:4 p4:6 p5:8 p6:4 p7:14=f p8:2 s1:p5+p6 s2:p7+p8", 38},
		{"by its last use, not its age", "stitch_limit=37MiB", 0, play + "g=10 -g f=14",
			"p3:4 p4:6 p5:8 p6:4 p7:14=f p8:2 s0:p3+p4 s2:p7+p8", 38},
		{"as many as it takes", "stitch_limit=24MiB", 0, play + "f=14", "p3:4 p4:6 p5:8 p6:4 p7:14=f p8:2 s2:p7+p8", 38},
		{"one in use is not dropped", "stitch_limit=4MiB", 0, "a=6 -a b=10", "p0:6=b p1:4=b s0:p0+p1=b", 10},
	})
}

// TestGMLakeMapsSplitAndStitched holds what addresses show: a stitched block the chunks of its parts in their order, and each half of a
// split its own.
func TestGMLakeMapsSplitAndStitched(t *testing.T) {
	dev := sim.New(0, sim.H200())
	g, err := NewGMLake(dev, DefaultGMLakeConf())
	if err != nil {
		t.Fatal(err)
	}
	playSteps(t, g, "a=4 b=8 c=6 -a -b -c d=12")
	for _, s := range g.stitched {
		var want []sim.Extent
		for _, part := range s.parts {
			extents, err := dev.Extents(g.prims[part].ptr, g.prims[part].size())
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, extents...)
		}
		got, err := dev.Extents(s.ptr, s.size)
		if err != nil || len(got) != len(want) {
			t.Fatalf("%d chunks at a stitched block, %d at its parts; %v", len(got), len(want), err)
		}
		for i := range got {
			if got[i].Handle != want[i].Handle {
				t.Errorf("chunk %d of the block of %d bytes is not that of its part", i, s.size)
			}
		}
	}
}
