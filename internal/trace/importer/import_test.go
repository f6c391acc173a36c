package importer

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/metrics"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"gm/formats/trace"
)

// imported is a trace that was made from a recording and read back.
type imported struct {
	rows     []string
	meta     trace.Meta
	warnings []string
	events   []trace.Event
}

func importFrom(t testing.TB, name string, in io.Reader) (*imported, error) {
	t.Helper()
	got := &imported{}
	var file bytes.Buffer
	w := trace.NewWriter(&file, trace.Meta{})
	if err := Import(in, name, w, func(s string) { got.warnings = append(got.warnings, s) }); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := trace.NewReader(bytes.NewReader(file.Bytes()), int64(file.Len()), name)
	if err != nil {
		t.Fatal(err)
	}
	got.meta = r.Meta()
	for {
		b, err := r.Next()
		if err == io.EOF {
			return got, r.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range b.Len() {
			e := b.Row(i)
			got.events = append(got.events, e)
			got.rows = append(got.rows, rowText(e, r.Strings().Text))
		}
	}
}

// rowText formats a row: time, op, id and size always, other fields only if they are set.
func rowText(e trace.Event, text func(int32) string) string {
	s := fmt.Sprintf("%d %v %d %d", e.TimeNS, e.Op, e.ID, e.Size)
	for _, more := range []struct {
		name  string
		value any
		set   bool
	}{
		{"addr", e.Addr, e.Addr != 0},
		{"device", e.Device, e.Device != 0},
		{"stream", e.Stream, e.Stream != 0},
		{"pool", text(e.Pool), e.Pool != 0},
		{"thread", e.Thread, e.Thread != 0},
		{"stack", text(e.Stack), e.Stack != 0},
		{"tag", text(e.Tag), e.Tag != 0},
		{"level", e.Level, e.Level != 0},
	} {
		if more.set {
			s += fmt.Sprintf(" %s=%v", more.name, more.value)
		}
	}
	return s
}

func packed(t testing.TB, data string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestImport(t *testing.T) {
	for _, c := range []struct {
		name, in  string
		source    string
		alignment int64
		rows      string
		warnings  []string
	}{
		{
			"rmm",
			"Thread,Time,Action,Pointer,Size,Stream\n" +
				"12,23:59:59.999999,allocate,0x30a000000,256,0x2\n" +
				"12,00:00:00.000001,allocate failure,(nil),1000000,0\n" +
				"140573312345856,00:00:00.5,free,0x30a000000,256,0x2\n" +
				"140573312345856,00:00:00.4,allocate,0x30a000000,10,0x0\n" +
				"13,00:00:01,free,0x99,5,0x0\n13,00:00:01,allocate,(nil),0,0x0\n13,00:00:01,free,(nil),0,0x0\n" +
				"13,00:00:02,allocate,0x30a000000,20,0x0\n",
			"rmm log x", 256,
			`86399999999000 alloc 1 256 addr=13052674048 stream=2 thread=12
86400000001000 oom 0 1000000 thread=12
86400500000000 free 1 256 addr=13052674048 stream=2 thread=1
86400500000000 alloc 2 10 addr=13052674048 thread=1
86402000000000 free 2 10 addr=13052674048 thread=1
86402000000000 alloc 3 20 addr=13052674048 thread=13`,
			[]string{
				"1 allocations of no bytes, or freed at once, are left out",
				"1 allocations are at the address of a live one, which is freed there",
				"1 frees are of addresses where nothing is live: they are left out",
				"1 rows lie before the one above them, by up to 100ms: they are put at its time",
			},
		},
		{
			"rmm without header, in seconds",
			"7,1634567890.123456,allocate,0x10,1,0\n7,1634567891,deallocate,0x10,1,0\n",
			"rmm log x", 256,
			"1634567890123456000 alloc 1 1 addr=16 thread=7\n1634567891000000000 free 1 1 addr=16 thread=7", nil,
		},
		{
			"stalloc",
			"Iteration Index : 0\n1 0x7f1e41329c00 512 0\nmicro-batch : F\nmlp->ParallelMLP Layer : F-start\n" +
				"1 0x7f1e41340000 1024 0x55\r\n0 0x7f1e41329c00 512 0\n1 0 0 0\n0 0 0 0",
			"stalloc trace x", 512,
			`0 mark 0 0 tag=Iteration Index : 0
1 alloc 1 512 addr=139767919582208
2 mark 0 0 tag=micro-batch : F
3 mark 0 0 tag=mlp->ParallelMLP Layer : F-start
4 alloc 2 1024 addr=139767919673344 stream=85
5 free 1 512 addr=139767919582208`,
			[]string{"1 allocations of no bytes, or freed at once, are left out"},
		},
		{
			"minimalloc",
			"id,lower,upper,size\nb1,0,10,100\nb2,10,20,200\nb3,5,10,300\nb4,3,3,9\nb5,1,2,0\n",
			"minimalloc csv x", 1,
			`0 alloc 1 100 tag=b1
5 alloc 2 300 tag=b3
10 free 1 100 tag=b1
10 free 2 300 tag=b3
10 alloc 3 200 tag=b2
20 free 3 200 tag=b2`,
			[]string{"2 allocations of no bytes, or freed at once, are left out"},
		},
		{
			"minimalloc, additions of gm",
			"id,lower,upper,size,same_as,next_to,arena\na,0,4,3,,,x\nb,0,9,5,a,,y\nc,0,9,5,,b,y\n",
			"minimalloc csv x", 1,
			`0 alloc 1 3 tag=a
0 alloc 2 5 tag=b
0 alloc 3 5 tag=c
4 free 1 3 tag=a
9 free 2 5 tag=b
9 free 3 5 tag=c`,
			[]string{
				"2 buffers are the same_as or next_to others: a trace does not say so, gmplan solve heeds it",
				"3 buffers name an arena: a trace does not say so, gmplan solve heeds it",
			},
		},
		{
			"minimalloc, other names",
			"\xef\xbb\xbfSize, hint,End,Begin ,buffer,alignment,offset,gaps\n 64,-1,4,2,x,32,128,3-4\n64,-1,7,5,y,64,,\n",
			"minimalloc csv x", 64,
			`2 alloc 1 64 addr=128 tag=x
5 free 1 64 addr=128 tag=x
5 alloc 2 64 tag=y
8 free 2 64 tag=y`,
			[]string{
				"alignments differ: the greatest, 64, is taken for all buffers",
				"1 buffers have gaps in their lifetimes: they count as live there",
			},
		},
		{
			"plain",
			"time_ns,op,id,size,addr,device,stream,pool,thread,stack,tag,extra\n" +
				"5,alloc,a,100,0xff,1,7,1.0,42,\"main (a.py:1);f(x, y) (b.py:2)\",\"say \"\"hi\"\"\",?\n" +
				"6,free_requested,a,100,0xff,1,7,1.0,42,,,\n" +
				"6,segment_alloc,,2097152,,,,,,,,\n7,free_completed,a,100,,,,,,,,\n" +
				"8,alloc,a,1,,,,,,,,\n9,free,a,1,,,,,,,,\n9,mark,0,0,,,,,,,end,\n",
			"csv x", 1,
			`5 alloc 1 100 addr=255 device=1 stream=7 pool=1.0 thread=42 stack=main (a.py:1);f(x, y) (b.py:2) tag=say "hi"
6 free_requested 1 100 addr=255 device=1 stream=7 pool=1.0 thread=42
6 segment_alloc 0 2097152
7 free_completed 1 100
8 alloc 2 1
9 free 2 1
9 mark 0 0 tag=end`, nil,
		},
		{
			"plain with levels", "time_ns,op,id,size,level\n5,alloc,a,100,driver\n6,alloc,b,7,framework\n7,alloc,c,8,\n", "csv x", 1,
			"5 alloc 1 100 level=driver\n6 alloc 2 7\n7 alloc 3 8", nil,
		},
		{"plain, no rows", "time_ns,op,id,size", "csv x", 1, "", nil},
		{
			"profile", profileOf(
				`{"ph": "X", "cat": "user_annotation", "name": "warm-up", "pid": 1, "tid": 7, "ts": 9, "dur": 0.5}`,
				move(7, "30.5", -256, 0x20, 1024, 1, 1), // first allocated before, then freed
				move(7, "11.25", 512, 0x10, 1792, 1, 0),
				move(7, "12", 64, 0x10, 64, 0, -1), // of the host
				move(8, "20", -512, 0x10, 1280, 1, 0),
				`{"ph": "X", "cat": "python_function", "name": "a.py(3): f", "pid": 1, "tid": 7, "ts": 10, "dur": 5}`,
				`{"ph": "X", "cat": "cpu_op", "name": "aten::empty", "pid": 1, "tid": 7, "ts": 11, "dur": 1}`,
				`{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1.5, "dur": 1}`,
				strings.Replace(move(7, "31", 1024, 0, 0, 1, 1), "[memory]", "[OutOfMemory]", 1)),
			"pytorch profile x", 512,
			`1009000 alloc 1 1280 tag=preexisting
1009000 alloc 2 1024 device=1 tag=preexisting
1009000 alloc 3 256 addr=32 device=1 tag=preexisting
1009000 mark 0 0 tag=warm-up START
1009500 mark 0 0 tag=warm-up END
1011250 alloc 4 512 addr=16 thread=7 stack=f (a.py:3);aten::empty
1020000 free 4 512 addr=16 thread=8
1030500 free 3 256 addr=32 device=1 thread=7
1031000 oom 0 1024 device=1 thread=7`,
			nil,
		},
		{
			"profile of the host", profileOf(move(1, "1", 64, 0x10, 64, 0, -1), move(1, "2", -64, 0x10, 0, 0, -1)), "pytorch profile x", 512,
			"1001000 alloc 1 64 addr=16 thread=1\n1002000 free 1 64 addr=16 thread=1",
			[]string{"the profile has no memory of a GPU: device 0 is the host's"},
		},
		{"snapshot", "(dS'device_traces'\n(l(l(dS'action'\nS'snapshot'\nsS'time_us'\nI3\nsaas.", "pytorch snapshot x", 512, "3000 snapshot 0 0", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			for how, in := range map[string]io.Reader{
				"plain":        strings.NewReader(c.in),
				"packed":       bytes.NewReader(packed(t, c.in)),
				"byte by byte": iotest.OneByteReader(strings.NewReader(c.in)),
			} {
				got, err := importFrom(t, "dir/x", in)
				if err != nil {
					t.Fatalf("%s: %v", how, err)
				}
				if diff := cmp.Diff(c.rows, strings.Join(got.rows, "\n")); diff != "" {
					t.Errorf("%s: rows (-want +got):\n%s", how, diff)
				}
				if diff := cmp.Diff(c.warnings, got.warnings); diff != "" {
					t.Errorf("%s: warnings (-want +got):\n%s", how, diff)
				}
				if got.meta.Source != c.source || got.meta.Alignment != c.alignment {
					t.Errorf("%s: meta is %+v", how, got.meta)
				}
			}
		})
	}
}

// TestLongStack leaves out whole outermost frames of a stack that is too long, and not what holds the memory.
func TestLongStack(t *testing.T) {
	const frame, last = "main (train.py:9)", "inner (a.py:3)"
	for name, stack := range map[string]string{
		"long":      strings.Repeat(frame+";", maxText/len(frame)) + last,
		"at a mark": strings.Repeat("x", 50) + ";" + strings.Repeat("y", maxText-len("...;;")-len(last)) + ";" + last,
	} {
		got, err := importFrom(t, "x", strings.NewReader("time_ns,op,id,size,stack\n1,alloc,a,9,"+stack+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		_, text, _ := strings.Cut(got.rows[0], "stack=...;")
		if !strings.HasSuffix(stack, ";"+text) || len(text) > maxText || len(text) < maxText-len(frame)-len("...;;") {
			t.Errorf("%s: %d bytes of %d are kept: %.60s", name, len(text), len(stack), got.rows[0])
		}
		want := []string{"1 rows have stacks that are too long: their outermost frames are left out"}
		if diff := cmp.Diff(want, got.warnings); diff != "" {
			t.Errorf("%s: warnings (-want +got):\n%s", name, diff)
		}
	}
}

// otherChecksum returns text compressed by gzip, with a wrong checksum.
func otherChecksum(t *testing.T, text string) string {
	file := packed(t, text)
	file[len(file)-8] ^= 1
	return string(file)
}

// profileOf returns a profile with events.
func profileOf(events ...string) string {
	return `{"schemaVersion": 1, "deviceProperties": [], "baseTimeNanoseconds": 1000000, "traceEvents": [` + strings.Join(events, ",") + "]}\n"
}

// move returns an event of a profile about memory.
func move(thread int, us string, bytes int64, addr uint64, total int64, kind, device int) string {
	return fmt.Sprintf(`{"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 1, "tid": %d, "ts": %s, "args": `+
		`{"Total Allocated": %d, "Bytes": %d, "Device Id": %d, "Device Type": %d, "Addr": %d, "Ev Idx": 0}}`, thread, us, total, bytes, device, kind, addr)
}

func TestImportErrors(t *testing.T) {
	const rmm = "Thread,Time,Action,Pointer,Size,Stream\n"
	const mm = "id,lower,upper,size\n"
	const plain = "time_ns,op,id,size\n"
	allocated := move(1, "1", 64, 16, 64, 1, 0)
	for _, c := range []struct{ name, in, want string }{
		{"empty", "", "x: nothing in it"},
		{"blank", "\n\n", `x: blank, not a recording: expected a gm trace (Parquet), a PyTorch memory snapshot`},
		{"text", "hello, world\n", `x: text that begins with "hello, world", not a recording: expected`},
		{"long text", strings.Repeat("é", 30) + "\n", `x: text that begins with "` + strings.Repeat("é", 20) + `", not a recording`},
		{"program", "\x7fELF\x00\x00", "x: a program, not a recording"},
		{"binary", "\x01\x02\xff", "x: binary data that begin with the bytes 01 02 ff, not a recording"},
		{"zip", "PK\x03\x04xyz", "x: a zip file, such as torch.save writes, not a recording"},
		{"json", " {\"a\": 1}", "x: JSON, but no profile of torch.profiler, not a recording"},
		{"html", "<!DOCTYPE html>", "x: HTML or XML, not a recording"},
		{"zstd", "\x28\xb5\x2f\xfd\x00", "x: compressed by zstd (only gzip is unpacked), not a recording"},
		{"parquet", "PAR1xxxxPAR1", "x: already Parquet: a gm trace needs no import"},
		{"cut gzip", string(packed(t, mm+"a,1,2,3\n")[:20]), "gunzip"},
		{"gzip of another checksum", otherChecksum(t, "(dS'device_traces'\n(ls."+strings.Repeat("\x00", 8<<20)), "gunzip: gzip: invalid checksum"},
		{"gzip of gzip", string(packed(t, string(packed(t, mm)))), "x: compressed twice by gzip, not a recording"},
		{"long line", mm + strings.Repeat("1", 2<<20), "x: line 2: longer than 1048576 bytes"},
		{"pickle", "\x80\x04cos\nsystem\n)R.", "x: read snapshot: pickle: byte 14: refused: the pickle calls os.system"},

		{"export for Perfetto", `{"displayTimeUnit":"ns","traceEvents":[` + "\n]}", "x: an export for Perfetto, which ui.perfetto.dev opens: name the trace or the snapshot that it was made from"},
		{"profile without memory", profileOf(), "x: a profile without memory: torch.profiler.profile(profile_memory=True) records one with it"},
		{"profile, cut", profileOf(allocated)[:200], "x: profile: event 0: unexpected EOF"},
		{"profile, cut between events", strings.TrimSuffix(profileOf(allocated), "]}\n"), "x: profile: byte"},
		{"profile, cut in the head", `{"deviceProperties": [{"id": 0`, "x: profile: deviceProperties: unexpected EOF"},
		{"profile and more", profileOf(allocated) + "{}", "more after the end of the profile"},
		{"profile, events no list", `{"traceEvents": 5}`, "x: profile: byte"},
		{"profile, no events", `{"traceEvents": null}`, "x: profile: byte 20: null, expected ["},
		{"profile, events a text", `{"traceEvents": "none"}`, `x: profile: byte 22: "none", expected [`},
		{"profile, an event no object", profileOf("7"), "x: profile: event 0: a number, expected an object"},
		{"profile, name a number", profileOf(allocated, `{"name": 7}`), "x: profile: event 1: name: a number, expected a text"},
		{"profile, bytes a text", profileOf(strings.Replace(allocated, `"Bytes": 64`, `"Bytes": "64"`, 1)), "x: profile: event 0: [memory]: Bytes: a text, expected a whole number of 64 bits"},
		{"profile, bytes 1e400", profileOf(strings.Replace(allocated, `"Bytes": 64`, `"Bytes": 1e400`, 1)), "x: profile: event 0: [memory]: Bytes: 1e400, expected a whole number of 64 bits"},
		{"profile, many bytes", profileOf(move(1, "1", 1<<60, 16, 0, 1, 0)), "x: profile: event 0: [memory] of 1152921504606846976 bytes, expected at most"},
		{"profile, min bytes", profileOf(move(1, "1", -1<<63, 16, 0, 1, 0)), "x: profile: event 0: [memory] of -9223372036854775808 bytes, expected"},
		{"profile, no bytes", profileOf(strings.Replace(allocated, `"Bytes"`, `"bites"`, 1)), "x: profile: event 0: [memory] has no Bytes or no Device Type"},
		{"profile, no args", profileOf(`{"ph": "i", "name": "[memory]", "ts": 1}`), "x: profile: event 0: [memory] has no arguments"},
		{"profile, address", profileOf(strings.Replace(allocated, `"Addr": 16`, `"Addr": -16`, 1)), "x: profile: event 0: [memory]: Addr: -16, expected a whole number from 0 on, of 64 bits"},
		{"profile, device", profileOf(move(1, "1", 64, 16, 0, 1, 1024)), "x: profile: event 0: [memory] on device 1024, expected 0 to 1023"},
		{"profile, time", profileOf(move(1, "1e30", 64, 16, 0, 1, 0)), "x: profile: event 0: ts: 1e30 is out of range"},
		{"profile, time before 1970", profileOf(move(1, "-1001", 64, 16, 0, 1, 0)), "x: time -1001000 ns after 1000000 ns is out of range"},
		{"profile, base", `{"baseTimeNanoseconds": -1, "traceEvents": [` + allocated + `]}`, "x: profile: baseTimeNanoseconds is -1, expected 0 to"},
		{"profile, deep", `{"traceEvents": [` + strings.Repeat("[", 20000), "x: profile: event 0: "},

		{"rmm time", rmm + "1,25:00:00,allocate,0x1,1,0\n", `x: line 2: time is "25:00:00", expected hh:mm:ss.ffffff`},
		{"rmm time 2", rmm + "1,99999999999999999999,allocate,0x1,1,0\n", "x: line 2: time is"},
		{"rmm fraction", rmm + "1,01:00:00.x,allocate,0x1,1,0\n", "x: line 2: time is"},
		{"plain level", "time_ns,op,id,size,level\n5,alloc,a,1,kernel\n", `x: line 2: level is "kernel", expected framework or driver`},
		{"rmm action", rmm + "1,01:00:00,grab,0x1,1,0\n", `x: line 2: unknown action "grab"`},
		{"rmm pointer", rmm + "1,01:00:00,free,zz,1,0\n", `x: line 2: pointer is "zz", expected an integer`},
		{"rmm size", rmm + "1,01:00:00,allocate,0x1,-1,0\n", "x: line 2: size is -1, expected 0 to 140737488355328"},
		{"rmm size 2^62", rmm + "1,01:00:00,allocate,0x1,4611686018427387904,0\n", "x: line 2: size is 4611686018427387904, expected"},
		{"rmm fields", rmm + "1,01:00:00,allocate\n", "x: line 2: 3 fields, expected 6"},
		{"rmm column", "Time,Action,Pointer,Stream\n", "x: line 1: no column named thread"},

		{"stalloc size", "1 0x1 512 0\n1 0x2 -5 0\n", `x: line 2: "1 0x2 -5 0", expected 0 or 1, pointer, size and stream`},
		{"stalloc fields", "1 0x1 512 0\n1 0x2\n", "x: line 2: "},
		{"stalloc kind", "1 0x1 512 0\n11 0x2 5 0\n", "x: line 2: "},

		{"minimalloc upper", mm + "a,5,4,1\n", "x: line 2: upper 4 is before lower 5"},
		{"minimalloc end", "id,lower,end,size\na,5,3,1\n", "x: line 2: end 3 is before lower 5"},
		{"minimalloc negative", mm + "a,-5,4,1\n", "x: line 2: lower is -5, expected 0 to 4611686018427387904"},
		{"minimalloc size", mm + "a,0,4,1.5\n", `x: line 2: size is "1.5", expected an integer`},
		{"minimalloc no size", mm + "a,0,4,\n", "x: line 2: size is empty"},
		{"minimalloc range", mm + "a,0,9223372036854775808,1\n", "x: line 2: upper is out of range: 9223372036854775808"},
		{"minimalloc both", "id,lower,upper,end,size\n", "x: line 1: expected one of the columns upper and end"},
		{"minimalloc twice", "id,lower,lower,upper,size\n", `x: line 1: two columns named "lower"`},
		{"minimalloc quotes", mm + "\"a,1,2,3\n", "x: line 2: quotes do not match"},

		{"plain no id", "time_ns,op,size\n", "x: line 1: no column named id"},
		{"plain op", plain + "1,grow,a,1\n", `x: line 2: unknown op "grow"`},
		{"plain time", plain + "5,mark,,0\n\n4,mark,,0\n", "x: line 4: time 4 ns is before that of the row above, 5"},
		{"plain negative time", plain + "-5,mark,,0\n", "x: line 2: time_ns is -5, expected 0 to 4611686018427387904"},
		{"plain free", plain + "1,free,a,1\n", `x: line 2: free of id "a": it is not live`},
		{"plain twice", plain + "1,alloc,a,1\n1,alloc,a,1\n", `x: line 3: alloc of id "a": it is live already`},
		{"plain completed", plain + "1,alloc,a,1\n1,free_completed,a,1\n", `x: line 3: free_completed of id "a": its free is not requested`},
		{"plain requested twice", plain + "1,alloc,a,1\n1,free_requested,a,1\n1,free_requested,a,1\n", "its free is requested already"},
		{"plain zero", plain + "1,alloc,a,0\n", `x: line 2: alloc of id "a": 0 bytes`},
		{"plain empty id", plain + "1,alloc,,1\n", `x: line 2: alloc of id "": an allocation needs an id`},
		{"plain mark with id", plain + "1,mark,a,1\n", `x: line 2: mark of id "a": expected none, or 0`},
		{"plain long id", plain + "1,alloc," + strings.Repeat("a", 300) + ",1\n", "longer than 256 bytes"},
		{"plain device", "time_ns,op,id,size,device\n1,alloc,a,1,1024\n", "x: line 2: device is 1024, expected 0 to 1023"},
		{"plain many fields", plain + strings.Repeat(",", 5000), "x: line 2: 5001 fields; at most 1024 are read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := importFrom(t, "x", strings.NewReader(c.in))
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "x: ") {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %q", err)
			}
		})
	}
}

func TestDetect(t *testing.T) {
	for head, want := range map[string]Format{
		"":                      Unknown,
		"x":                     Unknown,
		"PAR1":                  Parquet,
		"\x80\x05\x95":          Snapshot,
		"}q\x00(U":              Snapshot,
		"]q\x00.":               Snapshot,
		"(lp0\n":                Snapshot,
		"{\"a\": 1}":            Unknown,
		"\n{\"traceEvents\": [": Kineto,
		"{\"schemaVersion\": 1, \"deviceProperties\": [": Kineto,
		"[{\"traceEvents\": [":                           Unknown,
		"1 0x1 2 3\n":                                    STAlloc,
		"1 0x1 2\n":                                      Unknown,
		"a->b Layer : F-start\n0 1 2 3\n":                STAlloc,
		"Iteration Index : 3\n":                          Unknown,
		"SIZE,buffer_id,START,upper":                     MiniMalloc,
		"op,size,time_ns,id\r\n":                         Plain,
		"1,00:00:00,free,0x1,5,0":                        RMM,
		"1,00:00:00,grab,0x1,5,0":                        Unknown,
		strings.Repeat("x", detectBytes):                 Unknown,
	} {
		if got := Detect([]byte(head)); got != want {
			t.Errorf("%.40q is %v, want %v", head, got, want)
		}
	}
}

// TestShared imports the instances of memory planners that are too large for the repository, from below the directory
// that GM_SHARED names, and compares the greatest load with that of a sweep over the file.
func TestShared(t *testing.T) {
	dir := os.Getenv("GM_SHARED")
	if dir == "" {
		t.Skip("GM_SHARED is not set")
	}
	files, err := filepath.Glob(filepath.Join(dir, "dsa", "*.csv*"))
	if err != nil || len(files) == 0 {
		t.Skip("no instances in", dir, err)
	}
	peaks := map[string]int64{
		"minimalloc-A.csv": 1048576, "minimalloc-C.csv": 1039360, "minimalloc-D.csv": 986112, "minimalloc-J.csv": 989184,
		"idealloc-resnet50.csv": 1515472556, "idealloc-pangu2.6B.csv.gz": 5530099775,
	}
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			f, err := os.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			got, err := importFrom(t, name, f)
			if err != nil {
				t.Fatal(err)
			}
			live, peak := int64(0), int64(0)
			for _, e := range got.events {
				if e.Op == trace.OpAlloc {
					live += e.Size
				} else {
					live -= e.Size
				}
				peak = max(peak, live)
			}
			if want := peaks[filepath.Base(name)]; live != 0 || want != 0 && peak != want {
				t.Errorf("%d bytes at the end, peak %d, want 0 and %d", live, peak, want)
			}
			if len(got.warnings) > 0 {
				t.Errorf("warnings: %q", got.warnings)
			}
		})
	}
}

func FuzzImport(f *testing.F) {
	for _, seed := range []string{
		"Thread,Time,Action,Pointer,Size,Stream\n12,23:59:59.999999,allocate,0x30a000000,256,0x2\n1,00:00:00,free,0x30a000000,256,0x2\n",
		"7,1634567890.123456,allocate,0x10,1,0\n7,1634567891,allocate failure,(nil),1,0\n",
		"Iteration Index : 0\n1 0x7f1e41329c00 512 0\nmicro-batch : F\n0 0x7f1e41329c00 512 0\n",
		"id,lower,upper,size\nb1,0,10,100\nb2,10,20,200\n",
		"size,end,begin,buffer,alignment,offset,gaps\n64,4,2,x,32,128,3-4\n",
		profileOf(move(1, "1", 64, 16, 64, 1, 0), `{"ph": "X", "cat": "cpu_op", "name": "a", "tid": 1, "ts": 0, "dur": 9}`, move(1, "2", -64, 16, 0, 1, 0)),
		"time_ns,op,id,size,stack\n5,alloc,a,100,\"a;b,c\"\n6,free_requested,a,100,\n6,free_completed,a,100,\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		allocated := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
		metrics.Read(allocated)
		before := allocated[0].Value.Uint64()
		got, err := importFrom(t, "x", bytes.NewReader(data))
		metrics.Read(allocated)
		if took := allocated[0].Value.Uint64() - before; took > 64<<20+uint64(len(data))<<12 && !bytes.HasPrefix(data, []byte("\x1f\x8b")) {
			t.Errorf("%d bytes allocated for %d", took, len(data))
		}
		if err == nil && len(got.rows) > 2*len(data) {
			t.Errorf("%d rows of %d bytes", len(got.rows), len(data))
		}
		if err != nil && !strings.HasPrefix(err.Error(), "x: ") {
			t.Errorf("error without the name: %v", err)
		}
	})
}
