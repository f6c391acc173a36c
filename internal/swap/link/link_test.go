package link

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gm/internal/swap"
)

var _, _ swap.Copier = (*Link)(nil), Loaded{}

// two is a link of two GPUs: 1 us and 10 GB/s out, twice as much in, 5 GB/s out and in at once; half of all that on the second GPU when
// both copy.
func two() *Link {
	rates := func(share float64) (all []Rate) {
		for _, n := range []int64{1e6, 1e8, 1e9} {
			of := func(rate float64) int64 { return int64(math.Round(float64(n) / (1e-6 + float64(n)/rate/share))) }
			all = append(all, Rate{Bytes: n, Out: of(10e9), In: of(20e9), BothOut: of(5e9), BothIn: of(5e9)})
		}
		return all
	}
	g := GPU{Alone: rates(1), Together: rates(1), MemorySlowdown: 1}
	h := GPU{Ordinal: 1, Alone: rates(1), Together: rates(0.5), MemorySlowdown: 1}
	return &Link{Schema: Schema, Device: "two", GPUs: []GPU{g, h}}
}

func TestTimes(t *testing.T) {
	const us = time.Microsecond
	l := two()
	for _, test := range []struct {
		bytes   int64
		load    Load
		out, in time.Duration
	}{
		{0, Load{}, 0, 0},
		{-5, Load{}, 0, 0},
		{1, Load{}, us, us},
		{100_000, Load{}, 11 * us, 6 * us},
		{1e6, Load{}, 101 * us, 51 * us},
		{50_000_000, Load{}, 5001 * us, 2501 * us},
		{1e9, Load{}, 100_001 * us, 50_001 * us},
		{4e9, Load{}, 400_004 * us, 200_004 * us}, // at the rate of the largest
		{1e6, Load{Both: true}, 201 * us, 201 * us},
		{1e6, Load{GPUs: 1}, 101 * us, 51 * us},
		{1e6, Load{GPUs: 2}, 201 * us, 101 * us}, // of the slower GPU
		{1e6, Load{Both: true, GPUs: 2}, 401 * us, 401 * us},
		{1e6, Load{GPUs: 8}, 201 * us, 101 * us}, // no more were measured
		{1e6, Load{GPUs: -1}, 101 * us, 51 * us},
	} {
		out, in := l.Under(test.load).OutTime(test.bytes), l.Under(test.load).InTime(test.bytes)
		if !near(float64(out+us), float64(test.out+us)) || !near(float64(in+us), float64(test.in+us)) {
			t.Errorf("%d bytes, %+v: %v out and %v in, want %v and %v", test.bytes, test.load, out, in, test.out, test.in)
		}
		if test.load == (Load{}) && (l.OutTime(test.bytes) != out || l.InTime(test.bytes) != in) {
			t.Errorf("%d bytes: %v out and %v in", test.bytes, l.OutTime(test.bytes), l.InTime(test.bytes))
		}
	}
	if n := l.OutTime(math.MaxInt64); n < 10*365*24*time.Hour {
		t.Errorf("2^63 bytes take %v", n)
	}
	l.GPUs[0].Alone = []Rate{{1e6, 1, 1, 1, 1}}
	if n := l.OutTime(math.MaxInt64); n < 290*365*24*time.Hour {
		t.Errorf("2^63 bytes at a byte per second take %v", n)
	}
}

// TestBetween has times between those of one GPU and all of three.
func TestBetween(t *testing.T) {
	l := two()
	l.GPUs = append(l.GPUs, l.GPUs[1])
	if n := l.Under(Load{GPUs: 2}).OutTime(1e6); !near(float64(n), 151e3) {
		t.Errorf("two of three GPUs: %v, want 151 us", n)
	}
}

// TestMonotone: a larger copy never takes less time.
func TestMonotone(t *testing.T) {
	for _, l := range []*Link{two(), Default()} {
		for _, load := range []Load{{}, {Both: true}, {GPUs: 2}} {
			var out, in time.Duration
			for n := int64(1); n < 1<<35; n += 1 + n/50 {
				nextOut, nextIn := l.Under(load).OutTime(n), l.Under(load).InTime(n)
				if nextOut < out || nextIn < in {
					t.Fatalf("%s, %+v: %d bytes take %v and %v, less ones %v and %v", l.Device, load, n, nextOut, nextIn, out, in)
				}
				out, in = nextOut, nextIn
			}
		}
	}
}

func TestDefault(t *testing.T) {
	l := Default()
	if err := l.check(); err != nil {
		t.Fatal(err)
	}
	reread(t, l)
	for _, test := range []struct {
		bytes   int64
		out, in float64 // bytes per second
	}{{64 << 10, 21e9, 18e9}, {1 << 20, 51e9, 48e9}, {16 << 20, 55.2e9, 55e9}, {1 << 30, 55.3e9, 55.3e9}, {1 << 33, 55.3e9, 55.3e9}} {
		out, in := float64(test.bytes)/l.OutTime(test.bytes).Seconds(), float64(test.bytes)/l.InTime(test.bytes).Seconds()
		if !near(out, test.out) || !near(in, test.in) {
			t.Errorf("%d bytes at %.3g out and %.3g in, want %.3g and %.3g", test.bytes, out, in, test.out, test.in)
		}
	}
	both := l.Under(Load{Both: true})
	if sum := 1/both.OutTime(1<<30).Seconds() + 1/both.InTime(1<<30).Seconds(); sum*(1<<30) < 100e9 || sum*(1<<30) > 102e9 {
		t.Errorf("both directions at once come to %.3g bytes per second", sum*(1<<30))
	}
	if n := l.InTime(1); n < time.Microsecond || n > 5*time.Microsecond {
		t.Errorf("a byte takes %v", n)
	}
}

func TestReadRefuses(t *testing.T) {
	const rate = `{"bytes": 1000, "out_bytes_per_s": 5000000, "in_bytes_per_s": 5000000, "both_out_bytes_per_s": 5000000, "both_in_bytes_per_s": 5000000}`
	gpu := func(rates string) string {
		return `{"schema": "gm link 1", "device": "x", "gpus": [{"alone": [` + rates + `], "memory_slowdown": 1}]}`
	}
	with := func(from, to string) string { return strings.Replace(gpu(rate), from, to, 1) }
	if _, err := read(strings.NewReader(gpu(rate))); err != nil {
		t.Fatal(err)
	}
	slowdown := func(more string) string { return with(`"memory_slowdown": 1`, more) }
	faster := strings.NewReplacer("1000", "1001", `"out_bytes_per_s": 5000000`, `"out_bytes_per_s": 500000000`).Replace(rate)
	for text, want := range map[string]string{
		"":                                     "unexpected end of JSON input",
		"{}":                                   "no schema: gmswap bandwidth writes such files",
		`{"costs": {}}`:                        "no schema: gmswap bandwidth writes such files",
		`[]`:                                   "a list, expected an object",
		with("link 1", "link 2"):               `it has schema "gm link 2", this program reads "gm link 1"`,
		with("gm link 1", "other"):             `it is not a link file: its schema is "other"`,
		`{"schema": "gm link 1"}`:              "0 gpus, at least 1 and at most 1024 are possible",
		gpu(""):                                "gpus[0]: no figures in alone",
		gpu(rate + "," + rate):                 "gpus[0]: alone[1]: 1000 bytes: sizes must grow, from 1 on",
		with("1000", "0"):                      "gpus[0]: alone[0]: 0 bytes: sizes must grow, from 1 on",
		with("1000", "-1"):                     "gpus[0]: alone[0]: -1 bytes: sizes must grow, from 1 on",
		with(`"in_bytes_per_s": 5000000`, ""):  "invalid character ',' looking for beginning of object key string",
		with(`"in_bytes_per_s": 5000000,`, ""): "gpus[0]: alone[0]: 0 in_bytes_per_s, expected 1048576 to 1125899906842624",
		with(`"both_in_b`, `"b`):               "gpus[0]: alone[0]: 0 both_in_bytes_per_s, expected 1048576 to 1125899906842624",
		with(`"out_bytes_per_s": 5000000`, `"out_bytes_per_s": 9000000000000000000`): "gpus[0]: alone[0]: 9000000000000000000 out_bytes_per_s, expected 1048576 to 1125899906842624",
		gpu(rate + "," + faster):                                     "gpus[0]: alone[1]: 1001 bytes at 500000000 out_bytes_per_s take less time than 1000 bytes",
		slowdown(`"memory_slowdown": 0`):                             "gpus[0]: memory_slowdown 0 is not within 0 and 1000",
		slowdown(`"memory_slowdown": 1e9`):                           "gpus[0]: memory_slowdown 1e+09 is not within 0 and 1000",
		slowdown(`"touch_ns_per_gib": -1`):                           "gpus[0]: -1 touch_ns_per_gib and 0 register_ns_per_gib are not within 0 and an hour",
		slowdown(`"numa_node": -2`):                                  "gpus[0]: ordinal 0 on numa_node -2",
		slowdown(`"memory_slowdown": 1, "together": [{"bytes": 0}]`): "gpus[0]: together[0]: 0 bytes: sizes must grow, from 1 on",
		strings.Repeat(" ", maxFile+1):                               "more than 1048576 bytes",
	} {
		if _, err := read(strings.NewReader(text)); err == nil || err.Error() != want {
			t.Errorf("%.200s: %v, want %s", text, err, want)
		}
	}
}

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "link.json")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := Default().Write(f); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if l, err := Read(path); err != nil || l.OutTime(1e9) != Default().OutTime(1e9) {
		t.Errorf("%+v, %v", l, err)
	}
	if err := os.WriteFile(path, []byte("{}"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(path); err == nil || err.Error() != "link "+path+": no schema: gmswap bandwidth writes such files" {
		t.Errorf("a file of something else: %v", err)
	}
	if _, err := Read(path + ".none"); !errors.Is(err, os.ErrNotExist) || !strings.HasPrefix(err.Error(), "link: ") {
		t.Errorf("no file: %v", err)
	}
}

func FuzzRead(f *testing.F) {
	var text strings.Builder
	if err := Default().Write(&text); err != nil {
		f.Fatal(err)
	}
	f.Add(text.String())
	f.Add(`{"schema": "gm link 1", "gpus": [{"alone": [{"bytes": 1}]}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		l, err := read(strings.NewReader(text))
		if err != nil {
			return
		}
		reread(t, l)
		for _, n := range []int64{1, 1 << 20, 1 << 62} {
			for _, load := range []Load{{}, {Both: true}, {GPUs: 3}} {
				if out, in := l.Under(load).OutTime(n), l.Under(load).InTime(n); out < 0 || in < 0 {
					t.Errorf("%d bytes take %v and %v", n, out, in)
				}
			}
		}
	})
}
