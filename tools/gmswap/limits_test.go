package main

import (
	"testing"
	"time"
)

func TestTimeText(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 s", 1: "0.001 us", 1500: "1.500 us", 99_996: "100.0 us", time.Millisecond: "1.000 ms", 43_210_987: "43.21 ms",
		1_299_950_000: "1.300 s", 12_345_678_901: "12.35 s", 4000 * time.Second: "4000 s", 40_000 * time.Second: "40000 s",
	} {
		if got := timeText(d); got != want {
			t.Errorf("%d: %s, want %s", d, got, want)
		}
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 1000: "1000", 1024: "1Ki", 65536: "64Ki", 3 << 20: "3Mi", 1025 << 10: "1025Ki", 5 << 30: "5Gi", 1 << 40: "1024Gi"} {
		if got := count(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
