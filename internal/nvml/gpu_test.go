//go:build gpu

package nvml

import (
	"os"
	"testing"
)

// TestGPU asks the driver of a machine that has a GPU.
func TestGPU(t *testing.T) {
	l, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	list, err := l.Devices()
	if err != nil || len(list) == 0 {
		t.Fatalf("%d GPUs, error %v", len(list), err)
	}
	for _, d := range list {
		used, err := d.Used()
		if err != nil || used < 0 || used >= d.Total || d.Name == "" {
			t.Errorf("%s, %s: %d of %d bytes used, error %v", d.Name, d.UUID, used, d.Total, err)
		}
		if bytes, known := d.ProcessUsed(os.Getpid()); known {
			t.Errorf("%d bytes of a process that has no context", bytes)
		}
		if same, err := l.Device(d.UUID); err != nil || same.Total != d.Total || same.Name != d.Name {
			t.Errorf("by UUID %+v, error %v", same, err)
		}
		t.Logf("%s, %s: %d of %d bytes used", d.Name, d.UUID, used, d.Total)
	}
}
