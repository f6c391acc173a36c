package column

import "github.com/parquet-go/parquet-go/hashprobe"

// dictionary numbers the distinct values of a column in a row group.
type dictionary struct {
	values []int64               // by index
	probe  *hashprobe.Int64Table // of integers
	local  []int32               // by code: the index plus one, 0 if there is none
	bytes  int                   // of the strings
}

func (d *dictionary) reset() {
	for _, code := range d.values {
		if d.probe == nil {
			d.local[code] = 0
		}
	}
	if d.probe != nil {
		d.probe.Reset()
	}
	d.values = d.values[:0]
	d.bytes = 0
}

// add gives the next index to a code.
func (d *dictionary) add(code int64, text string) {
	if int(code) >= len(d.local) {
		d.local = append(d.local, make([]int32, int(code)+1-len(d.local)+len(d.local)/2)...)
	}
	d.values = append(d.values, code)
	d.local[code] = int32(len(d.values))
	d.bytes += 4 + len(text)
}

func (d *dictionary) has(code int64) bool {
	return uint64(code) < uint64(len(d.local)) && d.local[code] != 0
}
