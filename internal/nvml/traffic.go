package nvml

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// Meter adds up what a device sends over PCIe and receives, by any process.
type Meter struct {
	Sent, Received int64 // bytes since the meter was made; the headers of packets count, too
	Late           bool  // it was read too seldom: more may have passed

	device         *Device
	sent, received counter
	read           time.Time // before the counters were read last
}

// MeterPeriod is how often a narrow meter has to be read at least. The counters of some GPUs have 32 bits, which at 126 GB/s, what PCIe 6
// carries each way, go around in 34 ms.
const MeterPeriod = 30 * time.Millisecond

// Narrow says whether the driver's counters go around.
func (m *Meter) Narrow() bool { return !m.sent.wide }

// counter is the state of one of the driver's.
type counter struct {
	value uint64
	wide  bool // it does not go around
}

// since returns what was counted after an earlier state.
func (c counter) since(before counter) int64 {
	if c.wide {
		return int64(c.value - before.value)
	}
	return int64(uint32(c.value) - uint32(before.value))
}

// Meter returns a new meter, if the device counts.
func (d *Device) Meter() (*Meter, error) {
	m := &Meter{device: d, read: time.Now()}
	var err error
	m.sent, m.received, err = d.counters()
	return m, err
}

// Read brings the meter up to date.
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

// counters returns the driver's: NVML_FI_DEV_PCIE_COUNT_TX_BYTES and _RX_BYTES.
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
