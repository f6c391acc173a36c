package link

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"testing"

	"gm/internal/cuda/driver"
	"gm/internal/cuda/fake"
)

// TestMain runs the tests on the installed driver, or on the fake one.
func TestMain(m *testing.M) {
	if onGPU {
		os.Exit(m.Run())
	}
	os.Exit(fake.Rerun(m.Run, "GM_FAKE_DEVICES=2"))
}

// near reports whether a figure is what it should be, to 3 %: that copies of both directions do not end at the same time is within that.
func near(got, want float64) bool { return math.Abs(got-want) < 0.03*want }

// check compares rates with those of copies that take latency and then move at a rate in bytes a second.
func check(t *testing.T, what string, rates []Rate, out, in, both float64) {
	t.Helper()
	for _, r := range rates {
		of := func(rate float64) float64 { return float64(r.Bytes) / (latency + float64(r.Bytes)/rate) }
		if !near(float64(r.Out), of(out)) || !near(float64(r.In), of(in)) {
			t.Errorf("%s: %d bytes at %d out and %d in, want %.0f and %.0f", what, r.Bytes, r.Out, r.In, of(out), of(in))
		}
		// The pauses of small copies leave more to the other direction.
		if low, high := of(both)*0.97, of(max(out, in))*1.03; float64(r.BothOut) < low || float64(r.BothIn) < low ||
			float64(r.BothOut) > high || float64(r.BothIn) > high {
			t.Errorf("%s: %d bytes at %d out and %d in at once, want %.0f", what, r.Bytes, r.BothOut, r.BothIn, of(both))
		}
		if r.Bytes >= 16*mib && (!near(float64(r.BothOut), both) || !near(float64(r.BothIn), both)) {
			t.Errorf("%s: %d bytes at %d out and %d in at once, want %.0f", what, r.Bytes, r.BothOut, r.BothIn, both)
		}
	}
}

func TestMeasure(t *testing.T) {
	for gpus := 1; gpus <= 3; gpus++ {
		m := newMachine(t, gpus)
		steps := 0
		l, err := Measure(m.devices(), Options{Driver: "1.2", Largest: 100 * mib, Done: func() { steps++ }})
		if err != nil {
			t.Fatal(err)
		}
		if steps != Steps(gpus) || l.Device != "machine" || l.Driver != "1.2" || len(l.GPUs) != gpus {
			t.Errorf("%d steps of %d, %+v", steps, Steps(gpus), l)
		}
		for i, g := range l.GPUs {
			if g.Ordinal != i || g.NUMANode != -1 || g.TouchNS <= 0 || len(g.Alone) != 3 || len(g.Together) != 3*min(gpus-1, 1) {
				t.Errorf("GPU %d: %+v", i, g)
			}
			check(t, "alone", g.Alone, outRate, inRate, bothRate)
			check(t, "together", g.Together, outRate*othersPart, inRate*othersPart, bothRate*othersPart)
			if !near(g.MemorySlowdown, workRate/busyWork) {
				t.Errorf("memory is slowed down %v times, want %v", g.MemorySlowdown, workRate/busyWork)
			}
		}
		reread(t, l)
		for _, g := range m.gpus {
			if left := g.holds(); left != holdsNothing || len(g.events) != 0 {
				t.Errorf("GPU %d still has %s, and %d events", g.ordinal, left, len(g.events))
			}
		}
	}
}

// reread writes a link and reads it.
func reread(t *testing.T, l *Link) {
	t.Helper()
	var text, again bytes.Buffer
	if err := l.Write(&text); err != nil {
		t.Fatal(err)
	}
	second, err := read(bytes.NewReader(text.Bytes()))
	if err != nil {
		t.Fatalf("%v\n%s", err, text.String())
	}
	if err := second.Write(&again); err != nil || !bytes.Equal(text.Bytes(), again.Bytes()) {
		t.Errorf("%v\n%s\nis reread as\n%s", err, text.String(), again.String())
	}
}

// TestMeasureFails has each call fail, early or late.
func TestMeasureFails(t *testing.T) {
	for _, call := range []string{
		"PCIBusID", "MemInfo", "HostRegister", "MemAlloc", "StreamCreate", "StreamSynchronize", "StreamWaitEvent", "EventRecord",
		"MemcpyDtoHAsync", "MemcpyHtoDAsync", "MemcpyDtoDAsync", "IntervalBegin", "IntervalEnd", "Elapsed", "EventDestroy",
		"HostUnregister", "StreamDestroy", "MemFree",
	} {
		for _, first := range []int{1, 2, 50, 1000} {
			m := newMachine(t, 2)
			n := 0
			m.fail = func(_ int, c string) bool {
				if c == call {
					n++
				}
				return c == call && n == first
			}
			_, err := Measure(m.devices(), Options{Largest: mib})
			if n >= first && !errors.Is(err, errInjected) || n < first && err != nil {
				t.Errorf("call %d of %s: %v", first, call, err)
			}
			for _, g := range m.gpus {
				if left := g.holds(); left != holdsNothing {
					t.Errorf("call %d of %s: GPU %d still has %s", first, call, g.ordinal, left)
				}
			}
		}
	}
}

// full has little memory left.
type full struct {
	*gpu
	free int64
}

func (f full) MemInfo() (free, total int64, err error) { return f.free, f.free, nil }

func TestLittleMemory(t *testing.T) {
	m := newMachine(t, 1)
	l, err := Measure([]Device{full{m.gpus[0], 200 * mib}}, Options{})
	if err != nil || len(l.GPUs[0].Alone) != 3 {
		t.Errorf("%+v, %v", l, err)
	}
	if _, err := Measure([]Device{full{m.gpus[0], 400 * kib}}, Options{}); err == nil {
		t.Error("a device that is full is measured")
	}
	if _, err := Measure(nil, Options{}); err == nil {
		t.Error("no device is measured")
	}
}

// TestDriver measures the devices of the driver.
func TestDriver(t *testing.T) {
	library, err := driver.Load()
	if err != nil {
		t.Fatal(err)
	}
	n, err := library.Devices()
	if err != nil {
		t.Fatal(err)
	}
	var devices []Device
	for i := range n {
		d, err := library.Open(i)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		}()
		devices = append(devices, d)
	}
	o := Options{Largest: 2 * mib}
	if onGPU {
		o.Largest = 0
	}
	l, err := Measure(devices, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.check(); err != nil {
		t.Error(err)
	}
	reread(t, l)
	if !onGPU && fmt.Sprintf("%s %d %d %d", l.Device, len(l.GPUs), len(l.GPUs[0].Alone), len(l.GPUs[1].Together)) != "NVIDIA H200 2 2 2" {
		t.Errorf("%+v", l)
	}
	if onGPU {
		l.Write(os.Stdout)
	}
}
