// Package page makes a page for the browser from traces: every allocation over time, as a stack of bytes and at its address, with its tag,
// its stack and its neighbours. The page needs no network and no other file.
package page

import (
	"fmt"
	"path"
	"slices"

	"gm/formats/column"
	"gm/formats/trace"
	"gm/internal/report"
	"gm/internal/trace/overview"
	"gm/internal/trace/tags"
)

// Recording is what a page shows of one trace.
type Recording struct {
	Name   string // the base name of the file or, among several, what tells it apart; printable
	Source string // what the trace was made from
	Rows   int64
	Notes  []Note
	path   string // of the file
	parts  []*part
}

// part is the allocations that one level of software made on one GPU. Their births and deaths are its events; a position is a number of
// events, 0 before the first. People see rows of the trace instead, as in all other output.
type part struct {
	name     string
	short    string // where it stands beside others
	device   int32
	level    trace.Level
	behind   bool  // of the driver, and the framework has a part of the same GPU
	startNS  int64 // of the trace
	endNS    int64
	rows     int64 // of the trace
	capacity int64 // bytes of the GPU; 0 if unknown

	tensors  []tensor // in order of birth
	events   []event
	kinds    []kind
	segments []segment // in order of their first positions
	ooms     []oom
	marks    []mark
	sections []section // iterations
	merged   int       // allocations that are shown in one band, because there are too many

	labels  []tags.Label
	colors  map[string]int    // numbers of the colours of tags
	stacks  []string          // folded
	groups  map[string]string // names of the groups of stacks, by stack, if the recording is compared; nil if not
	streams []int64
	pools   []string
}

// tensor is an allocation. Event born is its birth; died is never for one that is not freed.
type tensor struct {
	born, died int32
	kind       int32
	addr       uint64 // 0 if unknown
}

// never is the event that does not happen.
const never = -1

// event is the birth of a tensor, or its death if it is not the first event of the tensor.
type event struct {
	tensor int32
	timeNS int64
	row    int64 // of the trace
}

// kind is what many tensors have in common: numbers into the lists of the part, and bytes.
type kind struct {
	size                       int64
	stack, label, stream, pool int32
	count                      int32 // allocations that the tensor stands for
}

// segment is memory that the framework's allocator has from the driver, from a position up to another.
type segment struct {
	from, to  int32 // to is never for one that is kept
	low, high uint64
	stream    int32 // number in the list of the part
}

// place is a point of the trace.
type place struct {
	At  int32 `json:"at"` // position
	NS  int64 `json:"ns"` // since the beginning of the trace
	Row int64 `json:"row"`
}

// oom is a request that failed.
type oom struct {
	place
	Size  int64  `json:"size"`
	Free  int64  `json:"free"`
	Stack string `json:"stack"` // folded
}

// mark is a point named by the user.
type mark struct {
	place
	Text string `json:"text"`
}

// section is an iteration.
type section struct {
	From place `json:"from"`
	To   place `json:"to"`
}

// Read reads the trace whose overview and tags are o and labels. A page has the allocations of all GPUs, those of PyTorch and those of the
// driver apart.
func Read(source *column.Source, o *overview.Overview, labels *tags.Tags) (*Recording, error) {
	parts, err := trace.ReadSource(source, func(r *trace.Reader) ([]*part, error) { return collect(r, o, labels) })
	if err != nil {
		return nil, err
	}
	if len(parts) == 0 {
		return nil, fmt.Errorf("%s: holds no allocations of a GPU's memory", source.Name())
	}
	setBehind(parts)
	notes, err := notesOf(source, o)
	if err != nil {
		return nil, err
	}
	return &Recording{
		Name: report.Printable(path.Base(source.Name())), Source: report.Printable(o.Source), Rows: o.Rows, Notes: notes,
		path: source.Name(), parts: parts,
	}, nil
}

// ReadSource reads a trace, its overview and its tags.
func ReadSource(source *column.Source) (*Recording, error) {
	o, err := trace.ReadSource(source, overview.Read)
	if err != nil {
		return nil, err
	}
	labels, err := trace.ReadSource(source, tags.Derive)
	if err != nil {
		return nil, err
	}
	return Read(source, o, labels)
}

// Of returns the recording with the allocations and notes of one GPU alone; nil if it has none.
func (r *Recording) Of(device int32) *Recording {
	one := *r
	one.Notes, one.parts = nil, nil
	for _, n := range r.Notes {
		if n.Device == device || n.Device == everyDevice {
			one.Notes = append(one.Notes, n)
		}
	}
	for _, p := range r.parts {
		if p.device == device {
			one.parts = append(one.parts, p)
		}
	}
	if len(one.parts) == 0 {
		return nil
	}
	return &one
}

// Join puts the traces of several processes on one view, in which a menu chooses among their GPUs.
func Join(all []*Recording) *Recording {
	if len(all) == 1 {
		return all[0]
	}
	joined := &Recording{Source: fmt.Sprintf("%d traces", len(all))}
	joined.Name = all[0].Name + " and " + all[1].Name
	if n := len(all) - 1; n > 1 {
		joined.Name = fmt.Sprintf("%s and %d others", all[0].Name, n)
	}
	for _, r := range all {
		joined.Rows += r.Rows
		for _, note := range r.Notes {
			joined.Notes = append(joined.Notes, Note{note.Device, r.Name + ": " + note.Text})
		}
		for _, p := range r.parts {
			named := *p
			named.name, named.short = r.Name+": "+p.name, r.Name
			if len(r.panes()) > 0 {
				named.short += ": " + p.short
			}
			joined.parts = append(joined.parts, &named)
		}
	}
	return joined
}

func setBehind(parts []*part) {
	for _, p := range parts {
		p.behind = p.level == trace.LevelDriver && slices.ContainsFunc(parts, func(other *part) bool {
			return other.level == trace.LevelFramework && other.device == p.device
		})
	}
}

// partName names a part for people.
func partName(device int32, level trace.Level, meta *trace.Meta) string {
	name := fmt.Sprintf("GPU %d", device)
	if int(device) < len(meta.Devices) && device >= 0 && meta.Devices[device] != "" {
		name += ", " + report.Printable(meta.Devices[device])
	}
	if level == trace.LevelDriver {
		name += ": allocations of the driver"
	}
	return name
}

// rowAt returns the row of the event that leads to a position.
func (p *part) rowAt(at int32) int64 {
	if at == 0 {
		return 0
	}
	return p.events[at-1].row
}

// peak returns the position with the most live bytes, the first of several, and these bytes.
func (p *part) peak() (at int32, bytes int64) {
	live := int64(0)
	for i, e := range p.events {
		t := &p.tensors[e.tensor]
		size := p.kinds[t.kind].size
		if t.born != int32(i) {
			live -= size
			continue
		}
		if live += size; live > bytes {
			at, bytes = int32(i)+1, live
		}
	}
	return at, bytes
}

// liveAt reports whether a tensor is live at a position.
func (t *tensor) liveAt(at int32) bool { return t.born < at && (t.died == never || t.died >= at) }
