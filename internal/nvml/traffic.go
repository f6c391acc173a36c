package nvml

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// Meter sums what a device sends and receives over PCIe, for all processes.
type Meter struct {
	Sent, Received int64 // bytes since the meter was made, including packet headers
	Late           bool  // it was read too seldom, so that the sums may be too low

	device         *Device
	sent, received counter
	read           time.Time // just before the counters were last read
}

// MeterPeriod is the longest time between two reads of a narrow meter. The counters of some GPUs have 32 bits and wrap around in 34 ms at
// 126 GB/s, the rate of PCIe 6 in each direction.
const MeterPeriod = 30 * time.Millisecond

// Narrow reports whether the driver's counters have 32 bits and wrap around.
func (m *Meter) Narrow() bool { return !m.sent.wide }

// counter is the state of one of the driver's counters.
type counter struct {
	value uint64
	wide  bool // 64 bits: it does not wrap around
}

// since returns the count since an earlier state.
func (c counter) since(before counter) int64 {
	if c.wide {
		return int64(c.value - before.value)
	}
	return int64(uint32(c.value) - uint32(before.value))
}

// Meter returns a new meter, or an error if the device has no counters.
func (d *Device) Meter() (*Meter, error) {
	m := &Meter{device: d, read: time.Now()}
	var err error
	m.sent, m.received, err = d.counters()
	return m, err
}

// Read updates the meter.
func (m *Meter) Read() error {
	begin := time.Now()
	sent, received, err := m.device.counters()
	if err != nil {
		return err
	}
	m.Sent += sent.since(m.sent)
	m.Received += received.since(m.received)
	m.Late = m.Late || m.Narrow() && time.Since(m.read) > MeterPeriod
	m.sent, m.received, m.read = sent, received, begin
	return nil
}

// counters reads the driver's counters NVML_FI_DEV_PCIE_COUNT_TX_BYTES and _RX_BYTES.
func (d *Device) counters() (sent, received counter, err error) {
	if !d.counting {
		return sent, received, fmt.Errorf("PCIe counters of GPU %s: %w", d.UUID, nvml.ERROR_FUNCTION_NOT_FOUND)
	}
	fields := []nvml.FieldValue{{FieldId: nvml.FI_DEV_PCIE_COUNT_TX_BYTES}, {FieldId: nvml.FI_DEV_PCIE_COUNT_RX_BYTES}}
	code := d.handle.GetFieldValues(fields)
	for _, f := range fields {
		if code == nvml.SUCCESS {
			code = nvml.Return(f.NvmlReturn)
		}
	}
	if code != nvml.SUCCESS {
		return sent, received, fmt.Errorf("PCIe counters of GPU %s: %w", d.UUID, code)
	}
	return counterOf(fields[0]), counterOf(fields[1]), nil
}

func counterOf(f nvml.FieldValue) counter {
	if nvml.ValueType(f.ValueType) == nvml.VALUE_TYPE_UNSIGNED_INT {
		return counter{value: uint64(binary.LittleEndian.Uint32(f.Value[:4]))}
	}
	return counter{value: binary.LittleEndian.Uint64(f.Value[:]), wide: true}
}
