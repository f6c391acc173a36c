package replay

import "testing"

// TestOutside: what others than PyTorch had from the driver, by recordings that say it, and by one that does not.
func TestOutside(t *testing.T) {
	for file, mebi := range map[string]int64{
		"parallel/dp-r0":   518 + 484 + 376 + 64 + 2, // context, buffers and code of NCCL, workspaces of cuBLAS, code of cudart
		"parallel/pp-r1":   518 + 580 + 438 + 64 + 2,
		"captures/opt1.3b": 743, // context 523.6, workspaces 128.3, code 92
		"opt13b-LRV":       0,
	} {
		programs, err := Open("../../../testdata/" + file + ".parquet")
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range programs {
			if got := p.Outside >> 20; got != mebi {
				t.Errorf("%s: %d MiB, want %d", file, got, mebi)
			}
		}
	}
}
