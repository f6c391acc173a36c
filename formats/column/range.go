package column

import "encoding/binary"

// extent is the range of a chunk's values, as the footer has it.
type extent struct {
	least, most       int64
	hasLeast, hasMost bool
}

// parseExtent decodes a Statistics of parquet.thrift, of a column of 8-byte integers.
func parseExtent(r *thriftReader, typ byte) (e extent) {
	r.structure(typ, func(id int16, typ byte) {
		switch id {
		case 5:
			e.most, e.hasMost = integerOf(r.bytes(typ))
		case 6:
			e.least, e.hasLeast = integerOf(r.bytes(typ))
		default:
			r.skip(typ)
		}
	})
	return e
}

func integerOf(b []byte) (v int64, ok bool) {
	if len(b) != 8 {
		return 0, false
	}
	return int64(binary.LittleEndian.Uint64(b)), true
}

// Range returns the least and the most value of a column of integers, by the footer alone. Not ok means that the footer does not say, or that there
// are no rows.
func (r *reader) Range(name string) (least, most int64, ok bool) {
	for i, c := range r.footer.columns {
		if c.name != name {
			continue
		}
		for _, g := range r.footer.groups {
			e := g.chunks[i].extent
			if !e.hasMost || !e.hasLeast {
				return 0, 0, false
			}
			if !ok {
				least, most = e.least, e.most
			}
			least, most, ok = min(least, e.least), max(most, e.most), true
		}
	}
	return least, most, ok
}
