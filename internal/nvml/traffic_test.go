package nvml

import (
	"encoding/binary"
	"testing"
	"testing/synctest"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// GetFieldValues tells of the bytes that have passed by now.
func (s *scripted) GetFieldValues(values []nvml.FieldValue) nvml.Return {
	defer time.Sleep(s.slow)
	for i := range values {
		values[i].ValueType, values[i].NvmlReturn = uint32(s.width), uint32(s.counting)
		binary.LittleEndian.PutUint64(values[i].Value[:], s.passed[values[i].FieldId])
		if s.width == nvml.VALUE_TYPE_UNSIGNED_INT {
			binary.LittleEndian.PutUint32(values[i].Value[4:], 0xdeadbeef) // is not the value's
		}
	}
	return nvml.SUCCESS
}

func TestMeter(t *testing.T) {
	const sent, received = nvml.FI_DEV_PCIE_COUNT_TX_BYTES, nvml.FI_DEV_PCIE_COUNT_RX_BYTES
	for _, width := range []nvml.ValueType{nvml.VALUE_TYPE_UNSIGNED_INT, nvml.VALUE_TYPE_UNSIGNED_LONG_LONG} {
		s := &scripted{width: width, passed: map[uint32]uint64{sent: 4<<30 - 5, received: 7<<30 + 3}}
		m, err := open(t, s).Meter()
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			s.passed[sent] += 3 << 30
			s.passed[received] += 1 << 20
			if err := m.Read(); err != nil {
				t.Fatal(err)
			}
		}
		if m.Sent != 9<<30 || m.Received != 3<<20 || m.Late {
			t.Errorf("type %d: %+v", width, m)
		}
	}
}

// TestMeterSlow has the driver take its time to answer.
func TestMeterSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{width: nvml.VALUE_TYPE_UNSIGNED_INT}
		m, err := open(t, s).Meter()
		if err != nil {
			t.Fatal(err)
		}
		for _, late := range []bool{false, true} {
			s.slow = MeterPeriod * 2 / 3
			if err := m.Read(); err != nil || m.Late != late {
				t.Errorf("late %v, %v, want %v", m.Late, err, late)
			}
		}
	})
}

func TestMeterLate(t *testing.T) {
	for width, late := range map[nvml.ValueType]bool{nvml.VALUE_TYPE_UNSIGNED_INT: true, nvml.VALUE_TYPE_UNSIGNED_LONG_LONG: false} {
		synctest.Test(t, func(t *testing.T) {
			m, err := open(t, &scripted{width: width}).Meter()
			if err != nil {
				t.Fatal(err)
			}
			for _, pause := range []time.Duration{MeterPeriod, MeterPeriod + 1, 0} {
				time.Sleep(pause)
				if err := m.Read(); err != nil || m.Late != (late && pause != MeterPeriod) {
					t.Errorf("type %d, after %v: late %v, %v", width, pause, m.Late, err)
				}
			}
		})
	}
}

func TestMeterOfNothing(t *testing.T) {
	none := &scripted{counting: nvml.ERROR_NOT_SUPPORTED}
	old := &scripted{missing: []string{"nvmlDeviceGetFieldValues"}}
	for _, s := range []*scripted{none, old} {
		if m, err := open(t, s).Meter(); err == nil {
			t.Errorf("%+v: %+v, and no error", s, m)
		}
	}
}
