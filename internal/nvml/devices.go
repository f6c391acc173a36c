package nvml

import (
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// Devices returns the GPUs of the machine, in the order of their PCI addresses. With an error it returns those found before. MIG
// instances are not included: they are found only by their UUID.
func (l *Library) Devices() ([]*Device, error) {
	n, code := l.api.DeviceGetCount()
	if code != nvml.SUCCESS {
		return nil, fmt.Errorf("count GPUs: %w", code)
	}
	var list []*Device
	for i := range n {
		h, code := l.api.DeviceGetHandleByIndex(i)
		if code != nvml.SUCCESS {
			return list, fmt.Errorf("find GPU %d: %w", i, code)
		}
		uuid, code := h.GetUUID()
		if code != nvml.SUCCESS {
			return list, fmt.Errorf("UUID of GPU %d: %w", i, code)
		}
		d, err := l.device(uuid, h)
		if err != nil {
			return list, err
		}
		list = append(list, d)
	}
	return list, nil
}
