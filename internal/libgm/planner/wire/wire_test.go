package wire

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	"gm/internal/blocks"
)

var requests = []blocks.Request{{Size: 512, Lasts: 1}, {Size: 1 << 20, Stream: 7, Lasts: 2}, {Size: 3}}

func cycle() *blocks.Cycle {
	return &blocks.Cycle{Proven: true, Arenas: []int64{2 << 20}, Steps: []blocks.Step{
		{Size: 512, Lasts: 1}, {Size: 1 << 20, Offset: 1024, Lasts: 2}, {Size: 3, Arena: blocks.NoArena},
	}}
}

func TestRoundTrip(t *testing.T) {
	body := AppendRequests(nil, requests)
	if got, err := Requests(body); err != nil || !reflect.DeepEqual(got, requests) {
		t.Errorf("requests %v, %v", got, err)
	}
	if name, device, err := File(AppendFile(nil, "/a plan", 3)); err != nil || name != "/a plan" || device != 3 {
		t.Errorf("file %q, device %d, %v", name, device, err)
	}
	if got, err := DecodeCycle(AppendCycle(nil, cycle())); err != nil || !reflect.DeepEqual(got, cycle()) {
		t.Errorf("cycle %+v, %v", got, err)
	}
	var line bytes.Buffer
	for _, m := range []Message{{AskLayout, body}, {Schedule, []byte("{}")}, Fail(errors.New(strings.Repeat("x", 2*MaxText)))} {
		if err := Write(&line, m); err != nil {
			t.Fatal(err)
		}
		if got, err := Read(&line); err != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("message %v, %v", got, err)
		}
	}
}

func TestRefused(t *testing.T) {
	var whole bytes.Buffer
	if err := Write(&whole, Message{Cycle, AppendCycle(nil, cycle())}); err != nil {
		t.Fatal(err)
	}
	spoil := func(change func(b []byte)) []byte {
		b := bytes.Clone(whole.Bytes())
		change(b)
		return b
	}
	for name, c := range map[string]struct {
		text []byte
		want string
	}{
		"nothing": {nil, "ended within"},
		"half":    {whole.Bytes()[:30], "ended within"},
		"words":   {[]byte("these are only words"), "not a message"},
		"version": {spoil(func(b []byte) { b[4]++ }), "of one build"},
		"kind":    {spoil(func(b []byte) { b[6] = 99 }), "kind 99"},
		"huge":    {spoil(func(b []byte) { b[15] = 0x7f }), "at most"},
	} {
		if m, err := Read(bytes.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v", name, m, err)
		}
	}
	overlapping := cycle()
	overlapping.Steps[1].Offset = 0
	overlapping.Steps[0].Lasts = 3
	for name, body := range map[string][]byte{
		"overlapping": AppendCycle(nil, overlapping), "empty": AppendCycle(nil, new(blocks.Cycle)), "longer": append(AppendCycle(nil, cycle()), 0), "none": nil,
	} {
		if c, err := DecodeCycle(body); err == nil {
			t.Errorf("%s: %+v", name, c)
		}
	}
	if err := Write(new(bytes.Buffer), Message{AskFile, make([]byte, MaxName+5)}); err == nil {
		t.Error("a body above its bound is written")
	}
}

// FuzzMessage decodes what is no message of gm: what is accepted is encoded the same again, and may be followed.
func FuzzMessage(f *testing.F) {
	for _, m := range []Message{
		{AskLayout, AppendRequests(nil, requests)}, {AskSoon, AppendSoon(nil, 1<<40, requests)}, {AskFile, AppendFile(nil, "/p", 0)}, {Cycle, AppendCycle(nil, cycle())}, Fail(ErrEnded),
	} {
		var b bytes.Buffer
		if err := Write(&b, m); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := Read(bytes.NewReader(text))
		if err != nil {
			return
		}
		var again []byte
		switch m.Kind {
		case AskLayout:
			r, err := Requests(m.Body)
			if err != nil {
				return
			}
			again = AppendRequests(nil, r)
		case AskSoon:
			room, r, err := Soon(m.Body)
			if err != nil {
				return
			}
			again = AppendSoon(nil, room, r)
		case AskFile:
			name, device, err := File(m.Body)
			if err != nil {
				return
			}
			again = AppendFile(nil, name, device)
		case Cycle:
			c, err := DecodeCycle(m.Body)
			if err != nil {
				return
			}
			if err := c.Check(); err != nil {
				t.Error(err)
			}
			again = AppendCycle(nil, c)
		default:
			return
		}
		if !bytes.Equal(again, m.Body) {
			t.Errorf("%x is encoded as %x", m.Body, again)
		}
	})
}
