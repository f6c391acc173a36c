package cards

import "time"

// H200 is the card that gm was measured on, with driver 580.159.03 and CUDA 13.0 (docs/figures.md): one on PCIe 5 x16, beside 16 cores of
// its host. If figures varied, the middle of their range is given.
func H200() Card {
	return Card{Name: "H200", GB: 141, Capacity: gib(139.72), Device: h200Device(), Copies: h200Copies(), Calls: h200Calls()}
}

func h200Device() *Device {
	return &Device{
		Name: "h200",
		About: "H200, rates as measured: matrix products at 790 TFLOP/s at best, copies within its memory at 4.3 TB/s; parts by a step of 8 Llama-7B " +
			"layers on 65,536 tokens, 3.20 s, of which the forward pass is 0.84 s",
		Single: 67e12, Half: 790e12, Memory: 4.3e12, Peer: 450e9,
		Reach: Reach{Conv3x3: 0.7, Conv: 0.5, Bare: 0.4, Matmul: 0.9, Attention: 0.73, AttentionBackward: 0.63, Memory: 0.9, Peer: 0.8},
	}
}

// h200Copies is partly derived. Large copies in both directions at once ran at 100 to 102 GB/s in total; Both is half of that, also for
// smaller copies, which are faster alone. Touch is the 380 to 420 ms of cuMemHostAlloc minus the 35 ms that cuMemHostRegister takes for
// touched memory.
func h200Copies() *Copies {
	return &Copies{
		Product: "NVIDIA H200", Driver: "580.159.03",
		Alone: []Copy{
			{Bytes: 64 << 10, In: 18_000_000_000, Out: 21_000_000_000},
			{Bytes: 1 << 20, In: 48_000_000_000, Out: 51_000_000_000},
			{Bytes: 16 << 20, In: 55_000_000_000, Out: 55_200_000_000},
			{Bytes: 1 << 30, In: 55_300_000_000, Out: 55_300_000_000},
		},
		Both:  50_500_000_000,
		Touch: 365 * time.Millisecond, Register: 35 * time.Millisecond,
	}
}

func h200Calls() map[string][]Point {
	const mib = 1 << 20
	us := func(x float64) time.Duration { return time.Duration(x * float64(time.Microsecond)) }
	return map[string][]Point{
		"cuMemAlloc":          {{2 * mib, us(37)}, {128 * mib, us(43)}, {1024 * mib, us(87)}, {2048 * mib, us(108)}},
		"cuMemFree":           {{2 * mib, us(27)}, {128 * mib, us(65)}, {1024 * mib, us(281)}, {2048 * mib, us(560)}},
		"cuMemAddressReserve": {{2 * mib, us(1.1)}, {128 * mib, us(2.3)}, {2048 * mib, us(3.1)}, {8192 * mib, us(10.8)}, {64 << 40, us(20)}},
		"cuMemAddressFree":    {{2 * mib, us(0.9)}, {128 * mib, us(1.9)}, {2048 * mib, us(2.6)}, {8192 * mib, us(7.1)}, {64 << 40, us(20)}},
		"cuMemCreate":         {{2 * mib, us(7.5)}, {512 * mib, us(11)}},
		"cuMemRelease":        {{2 * mib, us(12)}, {128 * mib, us(57)}, {512 * mib, us(200)}, {2048 * mib, us(620)}},
		"cuMemMap":            {{2 * mib, us(5.4)}, {128 * mib, us(5.9)}, {2048 * mib, us(8)}},
		"cuMemSetAccess":      {{2 * mib, us(23.5)}, {32 * mib, us(26)}, {128 * mib, us(30)}, {512 * mib, us(60)}},
		"cuMemUnmap":          {{2 * mib, us(18)}, {128 * mib, us(22)}, {2048 * mib, us(43)}},
		"cuEventRecord":       {{0, us(0.24)}},
		"cuEventQuery":        {{0, us(1.3)}},
		"cuStreamWaitEvent":   {{0, us(0.2)}},
		"clearing":            {{2 * mib, us(4.6)}, {32 * mib, us(71)}, {128 * mib, us(320)}, {512 * mib, us(1200)}, {2048 * mib, us(2800)}},
	}
}
