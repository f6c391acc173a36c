package link

// The figures of one NVIDIA H200 on PCIe 5 x16 (driver 580.159.03, CUDA 13.0, pinned memory of the host, 16 cores).
//
// Not all was measured there. Both directions at once came to 100 to 102 GB/s for large copies, taken for half as much each, also for
// smaller ones that alone are faster. The first touch is the 380 to 420 ms of cuMemHostAlloc less the 35 ms that cuMemHostRegister takes
// for memory that was touched.
const (
	h200Both     = 50_500_000_000 // bytes per second in each direction
	h200Touch    = 365_000_000    // ns per GiB
	h200Register = 35_000_000     // ns per GiB
)

// Default returns figures for where nothing was measured: those of an H200 by itself.
func Default() *Link {
	g := GPU{NUMANode: -1, TouchNS: h200Touch, RegisterNS: h200Register, MemorySlowdown: 1}
	for _, r := range [...]Rate{
		{Bytes: 64 << 10, In: 18_000_000_000, Out: 21_000_000_000},
		{Bytes: 1 << 20, In: 48_000_000_000, Out: 51_000_000_000},
		{Bytes: 16 << 20, In: 55_000_000_000, Out: 55_200_000_000},
		{Bytes: 1 << 30, In: 55_300_000_000, Out: 55_300_000_000},
	} {
		r.BothOut, r.BothIn = min(r.Out, h200Both), min(r.In, h200Both)
		g.Alone = append(g.Alone, r)
	}
	return &Link{Schema: Schema, Device: "NVIDIA H200", Driver: "580.159.03", GPUs: []GPU{g}}
}
