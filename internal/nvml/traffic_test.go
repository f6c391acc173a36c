package nvml

import (
	"encoding/binary"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

func (s *scripted) GetFieldValues(values []nvml.FieldValue) nvml.Return {
	for i := range values {
		values[i].ValueType, values[i].NvmlReturn = uint32(s.width), uint32(s.counting)
		binary.LittleEndian.PutUint64(values[i].Value[:], uint64(values[i].FieldId)<<30|0xffff)
	}
	return nvml.SUCCESS
}

func TestTraffic(t *testing.T) {
	wide := &scripted{count: 1, width: nvml.VALUE_TYPE_UNSIGNED_LONG_LONG}
	if out, in, err := open(t, wide).Traffic(); out != 197<<30|0xffff || in != 198<<30|0xffff || err != nil {
		t.Errorf("%d, %d, %v", out, in, err)
	}
	narrow := &scripted{count: 1, width: nvml.VALUE_TYPE_UNSIGNED_INT}
	if out, in, err := open(t, narrow).Traffic(); out != 1<<30|0xffff || in != 2<<30|0xffff || err != nil {
		t.Errorf("of 32 bits: %d, %d, %v", out, in, err)
	}
	none := &scripted{count: 1, counting: nvml.ERROR_NOT_SUPPORTED}
	old := &scripted{count: 1, missing: []string{"nvmlDeviceGetFieldValues"}}
	for _, s := range []*scripted{none, old} {
		if out, in, err := open(t, s).Traffic(); err == nil {
			t.Errorf("%+v: %d, %d, and no error", s, out, in)
		}
	}
}
