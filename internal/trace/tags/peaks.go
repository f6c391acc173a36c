package tags

import (
	"gm/formats/trace"
)

// Peaks returns for each GPU and tag the most bytes of the framework's allocations with that tag that live at a time, however certain the
// tag is. It reads the trace of the tags once more.
func (t *Tags) Peaks(r *trace.Reader) (map[int32]map[string]int64, error) {
	type block struct {
		size int64
		tag  string
	}
	live := map[int64]block{}
	sums, peaks := map[int32]map[string]int64{}, map[int32]map[string]int64{}
	err := trace.Each(r, func(_ int64, e *trace.Event) error {
		if e.Level != trace.LevelFramework {
			return nil
		}
		switch e.Op {
		case trace.OpAlloc:
			if peaks[e.Device] == nil {
				sums[e.Device], peaks[e.Device] = map[string]int64{}, map[string]int64{}
			}
			b := block{e.Size, TagOf(t.Of(e.ID).Name())}
			live[e.ID] = b
			sum := sums[e.Device][b.tag] + b.size
			sums[e.Device][b.tag] = sum
			peaks[e.Device][b.tag] = max(peaks[e.Device][b.tag], sum)
		case trace.OpFree, trace.OpFreeCompleted:
			if b, ok := live[e.ID]; ok {
				sums[e.Device][b.tag] -= b.size
				delete(live, e.ID)
			}
		}
		return nil
	})
	return peaks, err
}
