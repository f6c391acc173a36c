package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gm/formats/trace"
	"gm/internal/libgm/page"
)

// TestPage reads the page of a process while it runs, and after its end.
func TestPage(t *testing.T) {
	k := newKit(t)
	r := k.newRun(t)
	dir := filepath.Join(r.dir, "pages")
	t.Setenv("GM_DIR", dir)
	program := k.compile(t, "testdata/hold.c")
	for _, end := range []string{"exit", "kill"} {
		cmd := exec.Command(program, "60000")
		cmd.Env = r.env
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		pid := cmd.Process.Pid
		if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		checkPage(t, dir, pid)
		if end == "kill" {
			cmd.Process.Kill()
		}
		in.Close()
		cmd.Wait()
		if _, err := page.Read(pid); !errors.Is(err, page.ErrNone) {
			t.Errorf("after its %s process %d shows an account: %v", end, pid, err)
		}
		if pids, err := page.List(); err != nil || len(pids) > 0 {
			t.Errorf("after the %s of %d: processes %v, %v", end, pid, pids, err)
		}
		if pages, err := os.ReadDir(dir); err != nil || len(pages) > 0 {
			t.Errorf("after the %s of %d its page is still there: %v, %v", end, pid, pages, err)
		}
	}
}

func checkPage(t *testing.T, dir string, pid int) {
	t.Helper()
	if pids, err := page.List(); err != nil || !slices.Equal(pids, []int{pid}) {
		t.Errorf("processes %v, %v; want %d", pids, err, pid)
	}
	s, err := page.Read(pid)
	if err != nil {
		t.Fatal(err)
	}
	a, ok := s.Devices[0]
	if s.PID != pid || len(s.Devices) != 1 || !ok || s.Totals[0] != 141<<30 || time.Since(time.Unix(0, s.Started)) > time.Minute {
		t.Errorf("process %d shows %+v", pid, s)
	}
	if a.RequestedBytes[page.All].Current != 60000 || a.Allocation[page.Small].Current != 1 || a.DriverCalls == 0 {
		t.Errorf("account %+v", a)
	}
	pages, err := os.ReadDir(dir)
	if err != nil || len(pages) != 1 {
		t.Fatalf("pages %v, %v", pages, err)
	}
	if info, err := pages[0].Info(); err != nil || info.Mode() != 0o600 {
		t.Errorf("the page is %v, %v", info, err)
	}
}

// TestSummary reads the summary that GM_STATS leaves.
func TestSummary(t *testing.T) {
	k := newKit(t)
	r := k.newRun(t)
	r.env = append(r.env, "GM_STATS="+filepath.Join(r.dir, "stats-%p.json"))
	r.passes(t, k.compile(t, "testdata/contents.c"))
	files, err := filepath.Glob(filepath.Join(r.dir, "stats-*.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files %v, %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	var s summary
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	if len(s.Devices) != 1 || s.Allocator != "stitch" || !strings.HasSuffix(s.Command[0], "contents") {
		t.Fatalf("summary %s", text)
	}
	if a := s.Devices[0].Account; a.Allocation[page.All].Freed < 1000 || a.ReservedBytes[page.All].Peak == 0 {
		t.Errorf("account %+v", a)
	}
}

// TestTrace reads the trace that GM_STATS leaves: of all requests, and of only the last ones.
func TestTrace(t *testing.T) {
	k := newKit(t)
	for _, events := range []int{1 << 20, 1000} {
		r := k.newRun(t, "GM_EVENTS="+strconv.Itoa(events), "GM_LOG=/dev/null")
		path := filepath.Join(r.dir, "trace.parquet")
		r.env = append(r.env, "GM_STATS="+path)
		r.passes(t, k.compile(t, "testdata/contents.c"))
		f, err := trace.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		rows, older, live := 0, 0, int64(0)
		for {
			b, err := f.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			for i := range b.Len() {
				rows++
				if _, ok := trace.ParsePreexisting(f.Strings().Text(b.Tag[i])); ok {
					older++
				}
				if b.Op[i] == trace.OpAlloc {
					live += b.Size[i]
				} else {
					live -= b.Size[i]
				}
			}
		}
		if live != 0 || (older > 0) != (events == 1000) || rows < 1000 || f.Meta().Capacity != 141<<30 {
			t.Errorf("%d events: %d rows, %d older than the recording, %d bytes live at the end", events, rows, older, live)
		}
	}
}
