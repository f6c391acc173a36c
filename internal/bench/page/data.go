package page

import (
	"fmt"

	"gm/internal/bench"
	tensors "gm/internal/trace/page"
)

// data is what the page's script draws.
type data struct {
	Sections []sectionData `json:"sections"`
	Packed   string        `json:"packed"` // the numbers of all sections, as [tensors.Packer] packs them
}

// sectionData is what is drawn for a section. Its packed numbers follow those of the section before it, in this order: the times; for each
// series that is drawn, first of the allocated and then of the reserved bytes, the most and, if a bucket has more than one step, the least
// of each bucket; and the cells of the map, in use and reserved.
type sectionData struct {
	Name   string       `json:"name"`
	Stride int          `json:"stride"`
	Span   int64        `json:"span"` // nanoseconds
	Series []seriesData `json:"series"`
	Map    *mapData     `json:"map"`
	Limit  int64        `json:"limit"`  // bytes of the GPU, simulated or else traced; 0 if unknown
	Failed []int64      `json:"failed"` // nanoseconds at which requests failed while it was recorded
}

type seriesData struct {
	Name  string `json:"name"`
	Drawn bool   `json:"drawn"` // if not, it has no numbers
	Died  *int64 `json:"died"`  // nanoseconds at which it ends out of memory, nil if it does not
}

type mapData struct {
	Name    string      `json:"name"`
	Span    int64       `json:"span"`
	Columns int         `json:"columns"`
	Lines   int         `json:"lines"`
	Total   int64       `json:"total"`
	Ranges  []rangeData `json:"ranges"`
}

// rangeData has the address as text, because numbers in JavaScript do not hold 64 bits.
type rangeData struct {
	Addr   string `json:"addr"`
	Size   int64  `json:"size"`
	Offset int64  `json:"offset"`
}

func newData(sections []*Section) (*data, error) {
	d := &data{}
	var p tensors.Packer
	for _, s := range sections {
		d.Sections = append(d.Sections, s.data(&p))
	}
	var err error
	d.Packed, err = p.Text()
	return d, err
}

// died returns when an allocator ran out of memory; nil if it did not.
func (s *Section) died(row *bench.Row) *int64 {
	if row.OOM == nil || row.OOM.Row < 0 {
		return nil
	}
	at := row.OOM.TimeNS - s.beginNS
	return &at
}

func (s *Section) data(p *tensors.Packer) sectionData {
	d := sectionData{Name: s.Name, Stride: s.stride, Span: s.Duration, Limit: s.limit, Failed: append([]int64{}, s.failed...)}
	p.Numbers(s.times)
	for i, row := range s.Rows {
		curves := s.series[i]
		d.Series = append(d.Series, seriesData{row.Allocator, curves != nil, s.died(&row)})
		if curves == nil { // the arenas of a plan did not fit
			continue
		}
		for _, c := range []curve{curves.allocated, curves.reserved} {
			p.Numbers(c.most)
			if s.stride > 1 {
				p.Numbers(c.least)
			}
		}
	}
	if r := s.places; r != nil {
		d.Map = &mapData{Name: s.mapped, Span: r.Span, Columns: columns, Lines: lines, Total: r.Total}
		for _, a := range r.Ranges {
			d.Map.Ranges = append(d.Map.Ranges, rangeData{fmt.Sprintf("%x", uint64(a.Addr)), a.Size, a.Offset})
		}
		p.Bytes(r.Live)
		p.Bytes(r.Reserved)
	}
	return d
}
