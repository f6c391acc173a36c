package snapshot

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"gm/formats/column"
	"gm/formats/trace"
)

// dump writes pickles of snapshots, protocol 2, as PyTorch would have.
type dump struct {
	bytes.Buffer
	texts *column.Strings
}

func (d *dump) text(s string) {
	d.WriteByte('X')
	_ = binary.Write(d, binary.LittleEndian, uint32(len(s)))
	d.WriteString(s)
}

func (d *dump) number(n uint64) {
	d.WriteString("\x8a\x09") // LONG1, of nine bytes for the sign
	_ = binary.Write(d, binary.LittleEndian, n)
	d.WriteByte(0)
}

func (d *dump) signed(n int64) {
	d.WriteString("\x8a\x08")
	_ = binary.Write(d, binary.LittleEndian, n)
}

func (d *dump) boolean(b bool) {
	if b {
		d.WriteByte('\x88')
	} else {
		d.WriteByte('\x89')
	}
}

// list writes n values by item.
func (d *dump) list(n int, item func(int)) {
	d.WriteString("](")
	for i := range n {
		item(i)
	}
	d.WriteByte('e')
}

// dict writes what items writes, keys and values in turn.
func (d *dump) dict(items func()) {
	d.WriteString("}(")
	items()
	d.WriteByte('u')
}

// key writes a key, and then a value by one of the functions above.
func (d *dump) key(name string) *dump {
	d.text(name)
	return d
}

func (d *dump) frames(stack int32) {
	var frames []string
	if text := d.texts.Text(stack); text != "" {
		frames = strings.Split(text, ";")
		slices.Reverse(frames)
	}
	d.key("frames").list(len(frames), func(i int) {
		d.dict(func() { d.key("name").text(frames[i]) })
	})
}

func (d *dump) pool(key string, code int32) {
	if code < 0 {
		return
	}
	var a, b uint64
	if code > 0 {
		if _, err := fmt.Sscanf(d.texts.Text(code), "%d.%d", &a, &b); err != nil {
			panic(err)
		}
	}
	d.text(key)
	d.WriteByte('(')
	d.number(a)
	d.number(b)
	d.WriteByte('t')
}

func (d *dump) event(r record) {
	addr, action := "addr", r.op.String()
	switch r.op {
	case trace.OpOOM:
		addr = "device_free"
	case trace.OpMark:
		action = "user_defined"
	}
	d.dict(func() {
		d.key("action").text(action)
		d.key(addr).number(r.addr)
		d.key("size").signed(r.size)
		d.key("stream").signed(r.stream)
		d.key("time_us").signed(r.time / nsPerUs)
		d.key("user_metadata").text(d.texts.Text(r.tag))
		d.pool("pool_id", r.pool)
		d.frames(r.stack)
	})
}

func (d *dump) segment(device int32, s segment) {
	d.dict(func() {
		d.key("device").signed(int64(device))
		d.key("address").number(s.addr)
		d.key("total_size").number(s.size)
		d.key("stream").signed(s.stream)
		d.pool("segment_pool_id", s.pool)
		d.key("is_expandable").boolean(s.expandable)
		d.key("blocks").list(len(s.blocks), func(i int) { d.block(s.blocks[i]) })
	})
}

func (d *dump) block(b block) {
	state := "active_allocated"
	if b.pending {
		state = "active_pending_free"
	}
	d.dict(func() {
		d.key("address").number(b.addr)
		d.key("size").number(b.size)
		d.key("requested_size").signed(b.asked)
		d.key("state").text(state)
		d.frames(b.stack)
	})
}

// makeDump returns a snapshot with the given entries of each device from 0, and the segments and marks of rec.
func makeDump(rec *recording, traces [][]record) []byte {
	d := &dump{texts: rec.texts}
	d.WriteString("\x80\x02")
	d.dict(func() {
		d.text("segments")
		d.WriteString("](")
		for device, h := range rec.devices {
			for _, s := range h.segments {
				d.segment(device, s)
			}
		}
		d.WriteByte('e')
		d.key("device_traces").list(len(traces), func(i int) {
			d.list(len(traces[i]), func(n int) { d.event(traces[i][n]) })
		})
		d.key("external_annotations").list(len(rec.marks), func(i int) {
			m := rec.marks[i]
			d.dict(func() {
				d.key("name").text(rec.texts.Text(m.tag))
				d.key("device").signed(int64(m.device))
				d.key("time_us").signed(m.time / nsPerUs)
			})
		})
	})
	d.WriteByte('.')
	return d.Bytes()
}
