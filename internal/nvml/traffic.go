package nvml

import (
	"encoding/binary"
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// Traffic returns the bytes that the device has sent over PCIe and received, by any process, since its driver was loaded:
// NVML_FI_DEV_PCIE_COUNT_TX_BYTES and _RX_BYTES. Not all GPUs and drivers count them.
func (d *Device) Traffic() (sent, received int64, err error) {
	if !d.counting {
		return 0, 0, fmt.Errorf("PCIe counters of GPU %s: %w", d.UUID, nvml.ERROR_FUNCTION_NOT_FOUND)
	}
	fields := []nvml.FieldValue{{FieldId: nvml.FI_DEV_PCIE_COUNT_TX_BYTES}, {FieldId: nvml.FI_DEV_PCIE_COUNT_RX_BYTES}}
	code := d.handle.GetFieldValues(fields)
	for _, f := range fields {
		if code == nvml.SUCCESS {
			code = nvml.Return(f.NvmlReturn)
		}
	}
	if code != nvml.SUCCESS {
		return 0, 0, fmt.Errorf("PCIe counters of GPU %s: %w", d.UUID, code)
	}
	return count(fields[0]), count(fields[1]), nil
}

// count returns a field's value as a number; 32 bits of it count if its type is no wider.
func count(f nvml.FieldValue) int64 {
	if nvml.ValueType(f.ValueType) == nvml.VALUE_TYPE_UNSIGNED_INT {
		return int64(binary.LittleEndian.Uint32(f.Value[:4]))
	}
	return int64(binary.LittleEndian.Uint64(f.Value[:]))
}
