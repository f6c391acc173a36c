package capture

import (
	"encoding/binary"
	"testing"

	"gm/formats/trace"
	"gm/internal/capture/ring"
)

// FuzzInterpreter feeds any records: what comes out is a valid trace, whose writer and reader check every row.
func FuzzInterpreter(f *testing.F) {
	seed := func(kinds ...ring.Kind) []byte {
		var data []byte
		for i, k := range kinds {
			var r [24]byte
			r[0], r[1], r[2], r[3] = byte(k), byte(i), 1, byte(i%2)
			binary.LittleEndian.PutUint64(r[8:], 4096)
			binary.LittleEndian.PutUint64(r[16:], 8192)
			data = append(data, r[:]...)
		}
		return data
	}
	huge := seed(ring.Device)
	huge[7], huge[15] = 2, 0x70 // more than any device has
	f.Add(huge)
	f.Add(seed(ring.Device, ring.Primary, ring.Alloc, ring.Free, ring.FreeFailed, ring.Grew, ring.ContextGone))
	f.Add(seed(ring.Create, ring.Map, ring.Release, ring.Unmap, ring.UnmapFailed, ring.Retain, ring.ReleaseFailed))
	f.Add(seed(ring.PoolAlloc, ring.PoolSize, ring.PoolGone, ring.HostAlloc, ring.HostFree, ring.OOM, ring.Library, ring.Unknown))
	f.Fuzz(func(t *testing.T, data []byte) {
		out := newRows()
		in := newInterpreter(&out, noCards{})
		for ; len(data) >= 24; data = data[24:] {
			r := ring.Record{
				Kind: ring.Kind(data[0]), TimeNS: int64(data[1]), Thread: int32(data[2]), Device: int32(int16(binary.LittleEndian.Uint16(data[3:]))),
				C: uint64(data[5]), D: uint64(data[6]), Caller: uint64(data[7]),
				A: binary.LittleEndian.Uint64(data[8:]), B: binary.LittleEndian.Uint64(data[16:]),
			}
			if data[7]&1 == 1 {
				r.Extra = data[:24]
			}
			if data[7]&2 == 2 {
				r.C = r.A
			}
			in.take(&r)
		}
		if err := (&trace.Validator{}).Check(&out.batch); err != nil {
			t.Fatal(err)
		}
		for _, d := range in.devices {
			if d.total < 0 || d.total > trace.MaxSize {
				t.Fatalf("device of %d bytes", d.total)
			}
		}
	})
}
