package planner

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gm/internal/blocks"
	"gm/internal/libgm/planner/client"
	"gm/internal/libgm/planner/wire"
)

func TestMain(m *testing.M) {
	if Asked(os.Args) {
		os.Exit(Main())
	}
	os.Exit(m.Run())
}

// iteration takes 40 blocks and frees them in reverse order.
func iteration() []blocks.Request {
	all := make([]blocks.Request, 40)
	for i := range all {
		all[i] = blocks.Request{Size: int64(i+1) << 20, Stream: 3, Lasts: int32(2*(len(all)-i) - 1)}
		all[i].Lasts = min(all[i].Lasts, int32(len(all)))
	}
	return all
}

// shell returns planners that are a script.
func shell(script string) func() *exec.Cmd {
	return func() *exec.Cmd { return exec.Command("sh", "-c", script) }
}

func start(t *testing.T, command func() *exec.Cmd) *Service {
	t.Helper()
	s, err := listen(t.TempDir(), command)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestPlans has many processes at once, as it were, request plans of a service.
func TestPlans(t *testing.T) {
	s, err := Listen(t.TempDir(), "test")
	if err != nil {
		t.Fatal(err)
	}
	p := client.Planner{Path: s.Path}
	var all sync.WaitGroup
	for range 12 {
		all.Go(func() {
			c, err := p.Layout(t.Context(), iteration())
			if err != nil || len(c.Arenas) != 1 || !c.Proven {
				t.Errorf("cycle %+v, %v", c, err)
			}
		})
	}
	all.Go(func() {
		request := `{"policy": "auto", "device": 100, "host": 100, "graph": {"ops": [{}, {}], "tensors": [{"bytes": 64, "uses": [1]}]}}`
		if text, err := p.Schedule(t.Context(), []byte(request)); err != nil || !strings.Contains(string(text), `"peak":64`) {
			t.Errorf("schedule %s, %v", text, err)
		}
	})
	all.Go(func() {
		// Operator 1 makes what only the last one needs: it runs right before that.
		request := `{"ops": 4, "limit_ns": 60000000000, "tensors": [{"bytes": 64, "ops": [0, 2]}, {"bytes": 64, "ops": [1, 3]}, {"bytes": 1, "ops": [2, 3]}]}`
		if text, err := p.Order(t.Context(), []byte(request)); err != nil || !strings.Contains(string(text), `"order":[0,2,1,3],"peak":65,"bound":65`) {
			t.Errorf("order %s, %v", text, err)
		}
	})
	all.Go(func() {
		// The second layer is recomputed: both layers and the largest gradient take too much.
		request := `{"forward": 2, "limit": 80, "saved": [0, 1], "values": [{"bytes": 10}, {"bytes": 40}, {"bytes": 40}, {"bytes": 1}],
			"ops": [{"makes": [0]}, {"ns": 7, "reads": [0], "makes": [1], "able": true}, {"reads": [0], "makes": [2]}, {"reads": [1], "makes": [3]}]}`
		if text, err := p.Partition(t.Context(), []byte(request)); err != nil || string(text) != `{"saved":[0],"peak":50,"ns":7,"before":90}` {
			t.Errorf("partition %s, %v", text, err)
		}
	})
	all.Wait()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := p.Layout(t.Context(), iteration()); err == nil || !strings.Contains(err.Error(), "may have ended") {
		t.Errorf("after its end: %v", err)
	}
}

// TestFiles asks for the plans of what is no plan.
func TestFiles(t *testing.T) {
	s := start(t, func() *exec.Cmd { return exec.Command("/proc/self/exe", client.Word) })
	dir := t.TempDir()
	fifo, words := filepath.Join(dir, "fifo"), filepath.Join(dir, "words")
	if err := errors.Join(syscall.Mkfifo(fifo, 0o600), os.WriteFile(words, []byte("these are only words"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		fifo: "not a regular file", words: "not a Parquet file", dir: "not a regular file", dir + "/none": "no such file", "words": "not absolute",
	} {
		if _, err := (client.Planner{Path: s.Path}).File(t.Context(), name, 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

// TestLongName has a socket whose path does not fit into an address.
func TestLongName(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := Listen(dir, "test")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (client.Planner{Path: s.Path}).Layout(t.Context(), iteration()); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestBadPlanners has planners that fail in all ways: each request is answered by an error that says how, and none waits for long.
func TestBadPlanners(t *testing.T) {
	var whole, overlapping bytes.Buffer
	cycle := &blocks.Cycle{Arenas: []int64{1 << 30}}
	for _, r := range iteration() {
		cycle.Steps = append(cycle.Steps, blocks.Step{Size: r.Size, Stream: r.Stream, Lasts: r.Lasts})
	}
	err := errors.Join(wire.Write(&overlapping, wire.Message{Kind: wire.Cycle, Body: wire.AppendCycle(nil, cycle)}),
		wire.Write(&whole, wire.Message{Kind: wire.Schedule, Body: []byte("{}")}))
	dir := t.TempDir()
	file := func(name string, text []byte) string {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), text, 0o600))
		return filepath.Join(dir, name)
	}
	other, bad, half := file("other", whole.Bytes()), file("bad", overlapping.Bytes()), file("half", overlapping.Bytes()[:100])
	if err != nil {
		t.Fatal(err)
	}
	for script, want := range map[string]string{
		"exit 3":                          "the planner ended before it answered: exit status 3",
		"echo why >&2; kill -KILL $$":     "the planner ended before it answered: signal: killed: why",
		"echo these are only words":       "not a message of gm",
		"cat /dev/zero":                   "not a message of gm",
		"printf gmpl; exec yes":           "of version",
		"cat " + other:                    "kind 5, expected 4",
		"cat " + bad:                      "is not a plan",
		"cat " + half:                     "the planner ended before it answered",
		"cat " + half + "; kill -SEGV $$": "the planner ended before it answered",
	} {
		s := start(t, shell(script))
		begin := time.Now()
		if _, err := (client.Planner{Path: s.Path}).Layout(t.Context(), iteration()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", script, err, want)
		}
		if took := time.Since(begin); took > 20*time.Second {
			t.Errorf("%s: took %v", script, took)
		}
	}
	if _, err := (client.Planner{Path: "/bin/nosuch"}).Layout(t.Context(), iteration()); err == nil || !strings.Contains(err.Error(), "no planner") {
		t.Error(err)
	}
	if _, err := (client.Planner{}).Layout(t.Context(), iteration()); !errors.Is(err, client.ErrNone) {
		t.Error(err)
	}
}

// TestKilled kills a planner in the middle of a request. The next request has another.
func TestKilled(t *testing.T) {
	pid := filepath.Join(t.TempDir(), "pid")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, shell("if [ -e "+pid+" ]; then exec "+self+" planner; fi; echo $$ >"+pid+".new; mv "+pid+".new "+pid+"; exec sleep 100"))
	p := client.Planner{Path: s.Path}
	failed := make(chan error)
	go func() {
		_, err := p.Layout(context.Background(), iteration())
		failed <- err
	}()
	if err := syscall.Kill(await(t, pid), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; err == nil || !strings.Contains(err.Error(), "signal: killed") {
		t.Errorf("killed: %v", err)
	}
	if c, err := p.Layout(t.Context(), iteration()); err != nil || len(c.Steps) != 40 {
		t.Errorf("the next one: %v", err)
	}
}

// await returns the number in a file that another process writes.
func await(t *testing.T, name string) int {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if text, err := os.ReadFile(name); err == nil {
			n, err := strconv.Atoi(strings.TrimSpace(string(text)))
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatal("the planner did not start")
	return 0
}

// TestGivenUp has a process end while it is planned for: its planner ends, too. And one that hangs is given up in time.
func TestGivenUp(t *testing.T) {
	pid := filepath.Join(t.TempDir(), "pid")
	s := start(t, shell("echo $$ >"+pid+".new; mv "+pid+".new "+pid+"; exec sleep 100"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := (client.Planner{Path: s.Path}).Layout(ctx, iteration()); err == nil || !strings.Contains(err.Error(), "did not answer in time") {
		t.Errorf("a planner that hangs: %v", err)
	}
	planner := await(t, pid)
	for end := time.Now().Add(10 * time.Second); syscall.Kill(planner, 0) == nil; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the planner of a process that is gone still runs")
		}
	}
}

// TestBadRequests sends what is no request. Who sends nothing does not hold others up for good.
func TestBadRequests(t *testing.T) {
	s := start(t, func() *exec.Cmd { return exec.Command("/proc/self/exe", client.Word) })
	for _, text := range []string{"", "words, and no message", "gmpl\x01\x00\x01\x00\x04\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff", "gmpl\x01\x00\x63\x00\x00\x00\x00\x00\x00\x00\x00\x00"} {
		c, err := net.Dial("unix", s.Path)
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.WriteString(c, text)
		err = errors.Join(err, c.(*net.UnixConn).CloseWrite())
		answer, failed := wire.Read(c)
		if err := errors.Join(err, failed, c.Close()); err != nil || answer.Kind != wire.Failure {
			t.Errorf("%q: %+v, %v", text, answer, err)
		}
	}
	if _, err := (client.Planner{Path: s.Path}).Layout(t.Context(), iteration()); err != nil {
		t.Error(err)
	}
}

// TestProgram has a program plan where there is no run.
func TestProgram(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if c, err := (client.Planner{Path: self}).Layout(t.Context(), iteration()); err != nil || len(c.Steps) != 40 {
		t.Error(err)
	}
	if _, err := (client.Planner{Path: "/bin/true"}).Layout(t.Context(), iteration()); err == nil || !strings.Contains(err.Error(), "exit status 0") {
		t.Error(err)
	}
}

// FuzzRequest has the planner answer what need not be a request.
func FuzzRequest(f *testing.F) {
	f.Add(uint16(wire.AskLayout), wire.AppendRequests(nil, iteration()[:3]))
	f.Add(uint16(wire.AskSoon), wire.AppendSoon(nil, 1<<30, iteration()[:3]))
	f.Add(uint16(wire.AskSoon), wire.AppendSoon(nil, 1<<30, []blocks.Request{{Size: 1, Lasts: 1}, {Size: 1, Lasts: -5}, {Size: 1, Lasts: 1}}))
	f.Add(uint16(wire.AskFile), wire.AppendFile(nil, "/nosuch", 1))
	f.Fuzz(func(t *testing.T, kind uint16, body []byte) {
		if wire.Kind(kind) == wire.AskSchedule || len(body) > 400 { // package answer fuzzes those
			return
		}
		m, err := plans(wire.Message{Kind: wire.Kind(kind), Body: body})
		if err != nil {
			if strings.Contains(err.Error(), "BUG") {
				t.Error(err)
			}
			return
		}
		if _, err := wire.DecodeCycle(m.Body); err != nil {
			t.Error(err)
		}
	})
}
