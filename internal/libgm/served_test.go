package main

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	serving "gm/internal/swap/server"
	"gm/internal/swap/server/wire"
)

// gate builds libgmgate.so.
func (k kit) gate(t testing.TB) string {
	t.Helper()
	compiling.Lock()
	defer compiling.Unlock()
	out := filepath.Join(k.dir, "libgmgate.so")
	if _, err := os.Stat(out); err == nil {
		return out
	}
	flags := []string{
		"-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-fPIC", "-fvisibility=hidden",
		`-DGM_HOOKS="../../libgm/gate/hooks.h"`,
	}
	resolve := filepath.Join(k.dir, "resolve.o") // no sanitizer: that looks up functions by it before it is ready
	if err := k.tool("gcc", append(flags, "-c", "-o", resolve, "../capture/preload/resolve.c")...); err != nil {
		t.Fatal(err)
	}
	args := append(flags, "-shared", "-o", out, "gate/gate.c", resolve, "-Wl,-z,now,-Bsymbolic", "-ldl", "-pthread")
	if err := k.tool("gcc", append(args, k.sanitizer...)...); err != nil {
		t.Fatal(err)
	}
	return out
}

// memoryServer is a server within the test.
type memoryServer struct {
	*serving.Server
	path string
	mu   sync.Mutex
	said []string
	stop func()
}

func serveJobs(t testing.TB, settings serving.Settings) *memoryServer {
	t.Helper()
	m := &memoryServer{path: filepath.Join(t.TempDir(), "socket")}
	m.listen(t, settings)
	return m
}

func (m *memoryServer) listen(t testing.TB, settings serving.Settings) {
	t.Helper()
	if settings.Host == 0 {
		settings.Host = 1 << 40
	}
	if settings.Quantum == 0 {
		settings.Quantum = 200 * time.Millisecond
	}
	l, err := wire.Listen(m.path)
	if err != nil {
		t.Fatal(err)
	}
	m.Server = serving.New(settings, func(text string) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.said = append(m.said, text)
	})
	served := make(chan error, 1)
	go func() { served <- m.Serve(l) }()
	m.stop = sync.OnceFunc(func() {
		l.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { m.stop() })
}

// ask asks as gmswap ctl does.
func (m *memoryServer) ask(kind wire.Kind, name string, amount int64) error {
	conn, err := wire.Dial(m.path)
	if err != nil {
		return err
	}
	defer conn.Close()
	request := wire.Message{Kind: kind, Amount: amount}
	request.SetName(name)
	if err := conn.Send(&request); err != nil {
		return err
	}
	answer, err := conn.Receive()
	if err != nil {
		return err
	}
	if text := answer.TextText(); text != "" {
		return fmt.Errorf("%s", text)
	}
	return nil
}

// job returns the job of a name, nil if there is none.
func (m *memoryServer) job(name string) *wire.Message {
	for _, j := range m.Jobs() {
		if j.NameText() == name {
			return &j
		}
	}
	return nil
}

// until waits for something.
func until(t testing.TB, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !f(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s does not happen", what)
		}
	}
}

// served returns a run of a job with a name.
func (k kit) served(t testing.TB, path, name string, env ...string) *run {
	t.Helper()
	return k.newRun(t, append([]string{"LD_PRELOAD=" + k.gate(t), "GM_SERVER=" + path, "GM_NAME=" + name}, env...)...)
}

// TestServedRandom puts a job with several threads to sleep at random moments, wholly; its threads wake it.
func TestServedRandom(t *testing.T) {
	k := newKit(t)
	program := k.compile(t, "testdata/served.c")
	for _, name := range allocators {
		t.Run(name, func(t *testing.T) {
			k.sleeps(t, program, "GM_ALLOC="+name).holdsNothing(t)
		})
	}
	t.Run("links", func(t *testing.T) {
		k.sleeps(t, program, "GM_FAKE_DEVICES=2", "GM_LINKS=1").holdsNothing(t)
	})
}

// sleeps runs a program that is put to sleep at random moments.
func (k kit) sleeps(t *testing.T, program string, env ...string) *run {
	t.Helper()
	m := serveJobs(t, serving.Settings{})
	ended := make(chan bool)
	slept := 0
	go func() {
		defer close(ended)
		until(t, "the job", func() bool { return m.job("work") != nil })
		for m.job("work") != nil {
			if err := m.ask(wire.CtlSleep, "work", 0); err == nil {
				slept++
			}
			time.Sleep(time.Duration(rand.IntN(30)) * time.Millisecond)
		}
	}()
	r := k.served(t, m.path, "work", env...).passes(t, program, "work", "1500", "6000000")
	<-ended
	if slept < 3 {
		t.Errorf("it slept %d times: %q", slept, m.said)
	}
	t.Logf("it slept %d times", slept)
	return r
}

// interactive is a job that waits for lines.
type interactive struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
	err *strings.Builder
}

func (r *run) interactive(t testing.TB, program string, args ...string) *interactive {
	t.Helper()
	i := &interactive{cmd: exec.Command(program, args...), err: new(strings.Builder)}
	i.cmd.Env, i.cmd.Stderr = r.env, i.err
	var err error
	if i.in, err = i.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := i.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	i.out = bufio.NewScanner(out)
	if err := i.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		i.cmd.Process.Kill()
		i.cmd.Wait()
	})
	return i
}

func (i *interactive) line(t testing.TB, want string) {
	t.Helper()
	if !i.out.Scan() || i.out.Text() != want {
		t.Fatalf("%q, want %q\n%s", i.out.Text(), want, i.err)
	}
}

func (i *interactive) say(t testing.TB) {
	t.Helper()
	if _, err := io.WriteString(i.in, "\n"); err != nil {
		t.Fatal(err)
	}
}

func cardOf(m *wire.Message) wire.Card {
	if m == nil || m.Count == 0 {
		return wire.Card{}
	}
	return m.Cards[0]
}

// TestServedStill puts a job to sleep and wakes it, by name and by its next call; it sleeps again when idle.
func TestServedStill(t *testing.T) {
	k := newKit(t)
	program := k.compile(t, "testdata/served.c")
	m := serveJobs(t, serving.Settings{Idle: 1500 * time.Millisecond})
	i := k.served(t, m.path, "still").interactive(t, program, "still", "20", "6000000")
	i.line(t, "ready")
	until(t, "the job", func() bool { return m.job("still") != nil })
	for range 3 {
		if err := m.ask(wire.CtlSleep, "still", 0); err != nil {
			t.Fatal(err)
		}
		j := m.job("still")
		if c := cardOf(j); j.State != wire.Asleep || c.Here != 0 || c.Away == 0 {
			t.Fatalf("asleep: %v %+v", j.State, c)
		}
		if err := m.ask(wire.CtlWake, "still", 0); err != nil {
			t.Fatal(err)
		}
		if c := cardOf(m.job("still")); c.Here == 0 || c.Away != 0 {
			t.Fatalf("awake: %+v", c)
		}
	}
	until(t, "idle sleep", func() bool { return cardOf(m.job("still")).Away > 0 })
	i.say(t)
	i.line(t, "same")
	until(t, "the wake is known", func() bool { return cardOf(m.job("still")).Away == 0 })
	if err := m.ask(wire.CtlSleep, "nobody", 0); err == nil || !strings.Contains(err.Error(), "there is no job nobody") {
		t.Errorf("a job that is not there: %v", err)
	}
}

// TestServedHold holds a job asleep that computes.
func TestServedHold(t *testing.T) {
	k := newKit(t)
	program := k.compile(t, "testdata/served.c")
	m := serveJobs(t, serving.Settings{})
	i := k.served(t, m.path, "still").interactive(t, program, "still", "20", "6000000")
	i.line(t, "ready")
	if err := m.ask(wire.CtlSleep, "still", 1); err != nil {
		t.Fatal(err)
	}
	i.say(t)
	until(t, "waiting", func() bool { return m.job("still").State == wire.Waiting })
	time.Sleep(200 * time.Millisecond)
	if c := cardOf(m.job("still")); c.Here != 0 {
		t.Fatalf("it was held, and is awake: %+v", c)
	}
	if err := m.ask(wire.CtlWake, "still", 0); err != nil {
		t.Fatal(err)
	}
	i.line(t, "same")
}

// TestServedStore has the store of a job give up its object while the job is held asleep and one of its threads asks for the object.
func TestServedStore(t *testing.T) {
	k := newKit(t)
	program := k.compile(t, "testdata/served.c")
	m := serveJobs(t, serving.Settings{})
	i := k.served(t, m.path, "storing").interactive(t, program, "storing", "4", "6000000")
	i.line(t, "ready")
	if err := m.ask(wire.CtlSleep, "storing", 1); err != nil {
		t.Fatal(err)
	}
	i.say(t)
	until(t, "waiting", func() bool { return m.job("storing").State == wire.Waiting })
	time.Sleep(50 * time.Millisecond)
	slept := make(chan error, 1)
	go func() { slept <- m.ask(wire.CtlSleep, "objects", 0) }()
	select {
	case err := <-slept:
		if c := cardOf(m.job("objects")); err != nil || c.Here != 0 || c.Away != 4<<20 {
			t.Errorf("%v, %+v", err, c)
		}
	case <-time.After(10 * time.Second):
		t.Error("the store waits for its process to wake")
	}
	if err := m.ask(wire.CtlWake, "storing", 0); err != nil {
		t.Fatal(err)
	}
	i.line(t, "same")
}

// TestServedStoreFirst has a job open a store before it has any memory: the store has the name of the job, and its quota.
func TestServedStoreFirst(t *testing.T) {
	k := newKit(t)
	program := k.compile(t, "testdata/served.c")
	const quota = 40 << 20
	m := serveJobs(t, serving.Settings{Quotas: map[string]int64{"first": quota}})
	i := k.served(t, m.path, "first").interactive(t, program, "first", "1", "6000000")
	i.line(t, "ready")
	until(t, "a store with the name and the quota", func() bool {
		return slices.ContainsFunc(m.Jobs(), func(j wire.Message) bool {
			return j.State == wire.Storing && j.NameText() == "first" && j.Amount == quota
		})
	})
	i.say(t)
	i.line(t, "same")
}

// TestServedStart starts a job on a card that another has filled: that sleeps for the context.
func TestServedStart(t *testing.T) {
	k := newKit(t)
	program := k.compile(t, "testdata/served.c")
	m := serveJobs(t, serving.Settings{})
	card := []string{"GM_FAKE_COUNTS=" + filepath.Join(t.TempDir(), "counts"), "GM_FAKE_CAPACITY=" + strconv.Itoa(1200<<20)}
	first := k.served(t, m.path, "first", card...).interactive(t, program, "still", "21", "60000000")
	first.line(t, "ready")
	second := k.served(t, m.path, "second", card...).interactive(t, program, "still", "4", "6000000")
	second.line(t, "ready")
	m.gaveWay(t, "first")
	second.say(t)
	second.line(t, "same")
	first.same(t, second)
}

// gaveWay checks that a job has memory on the host.
func (m *memoryServer) gaveWay(t *testing.T, name string) {
	t.Helper()
	if c := cardOf(m.job(name)); c.Away == 0 {
		t.Errorf("%s has %d bytes on the card and none on the host", name, c.Here)
	}
}

// same checks the memory of a job after another process has ended whose context leaves no room for it.
func (i *interactive) same(t *testing.T, other *interactive) {
	t.Helper()
	other.cmd.Process.Kill()
	other.cmd.Wait()
	i.say(t)
	i.line(t, "same")
}

// TestServedCode has a job load code on a card that another has filled: that sleeps for it. The first launch fails for want of room, too,
// which CUDA says in other words.
func TestServedCode(t *testing.T) {
	k := newKit(t)
	program := k.compile(t, "testdata/served.c")
	m := serveJobs(t, serving.Settings{})
	card := []string{"GM_FAKE_COUNTS=" + filepath.Join(t.TempDir(), "counts"), "GM_FAKE_CAPACITY=" + strconv.Itoa(1150<<20)}
	second := k.served(t, m.path, "second", append(card, "GM_FAKE_FAIL=cuLaunchKernel:1=46")...).interactive(t, program, "loading", "1", "6000000")
	second.line(t, "ready")
	first := k.served(t, m.path, "first", card...).interactive(t, program, "still", "4", "60000000")
	first.line(t, "ready")
	if c := cardOf(m.job("first")); c.Away != 0 {
		t.Errorf("the first job has %d bytes on the host before", c.Away)
	}
	second.say(t)
	second.line(t, "same")
	m.gaveWay(t, "first")
	first.same(t, second)
}

// TestServedVisitor opens a store in a process that is no job, on a card that a job has filled: that sleeps for the context.
func TestServedVisitor(t *testing.T) {
	k := newKit(t)
	program := k.compile(t, "testdata/served.c")
	m := serveJobs(t, serving.Settings{})
	card := []string{"GM_FAKE_COUNTS=" + filepath.Join(t.TempDir(), "counts"), "GM_FAKE_CAPACITY=" + strconv.Itoa(1200<<20)}
	first := k.served(t, m.path, "first", card...).interactive(t, program, "still", "21", "60000000")
	first.line(t, "ready")
	visitor := k.newRun(t, append(card, "GM_SERVER="+m.path)...).interactive(t, program, "alone", "0", "1")
	visitor.line(t, "ready")
	m.gaveWay(t, "first")
	visitor.say(t)
	visitor.line(t, "same")
	first.same(t, visitor)
}

// TestServedRefuses has jobs refuse to sleep, and say why: while a graph is captured, and once memory was passed on.
func TestServedRefuses(t *testing.T) {
	k := newKit(t)
	program := k.compile(t, "testdata/served.c")
	for how, want := range map[string]string{"captured": "a CUDA graph is being captured", "shared": "bytes of its memory are shared"} {
		m := serveJobs(t, serving.Settings{})
		i := k.served(t, m.path, how).interactive(t, program, how, "4", "6000000")
		i.line(t, "ready")
		if err := m.ask(wire.CtlSleep, how, 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", how, err)
		}
		i.say(t)
		i.line(t, "same")
		if how == "shared" {
			until(t, "the list says why", func() bool { return strings.Contains(m.job(how).TextText(), want) })
		} else if err := m.ask(wire.CtlSleep, how, 0); err != nil {
			t.Errorf("after the capture: %v", err)
		}
	}
}

// TestServedShare shares memory of all kinds that could sleep with another process.
func TestServedShare(t *testing.T) {
	k := newKit(t)
	program := k.compile(t, "testdata/share.c")
	m := serveJobs(t, serving.Settings{})
	for _, name := range allocators {
		k.served(t, m.path, "share", "GM_ALLOC="+name).passes(t, program).holdsNothing(t)
	}
}

// TestServerKilled ends the server while a job sleeps, held even: the job wakes by itself, and connects to the next server.
func TestServerKilled(t *testing.T) {
	k := newKit(t)
	program := k.compile(t, "testdata/served.c")
	m := serveJobs(t, serving.Settings{})
	i := k.served(t, m.path, "still", "GM_LOG=/dev/null").interactive(t, program, "still", "20", "6000000")
	i.line(t, "ready")
	if err := m.ask(wire.CtlSleep, "still", 1); err != nil {
		t.Fatal(err)
	}
	m.stop()
	m.Hang()
	i.say(t)
	i.line(t, "same")
	m.listen(t, serving.Settings{})
	until(t, "the job comes back", func() bool { return cardOf(m.job("still")).Here > 0 })
}

// TestServersEnd ends servers at random moments, also while a job goes to sleep or wakes, and starts others.
func TestServersEnd(t *testing.T) {
	k := newKit(t)
	program := k.compile(t, "testdata/served.c")
	m := serveJobs(t, serving.Settings{})
	ended := make(chan bool)
	go func() {
		defer close(ended)
		k.served(t, m.path, "work", "GM_LOG=/dev/null").passes(t, program, "work", "6000", "6000000")
	}()
	servers, slept := 1, 0
	for working := true; working; servers++ {
		until(t, "the job joins", func() bool {
			select {
			case <-ended:
				working = false
			default:
			}
			return !working || m.job("work") != nil
		})
		asked := make(chan bool)
		go func() {
			defer close(asked)
			if m.ask(wire.CtlSleep, "work", int64(rand.IntN(2))) == nil {
				slept++
			}
		}()
		if servers%3 == 0 { // on a slow machine no sleep is done in the time that the others have
			<-asked
		}
		time.Sleep(time.Duration(rand.IntN(80)) * time.Millisecond)
		m.stop()
		m.Hang()
		<-asked
		m.listen(t, serving.Settings{})
	}
	<-ended
	if servers < 4 || slept == 0 {
		t.Errorf("%d servers, %d sleeps", servers, slept)
	}
	t.Logf("%d servers, %d sleeps", servers, slept)
}

// TestJobKilled kills a job while children of it hold its connection: it is gone from the list, and so is its memory.
func TestJobKilled(t *testing.T) {
	k := newKit(t)
	program := k.compile(t, "testdata/served.c")
	m := serveJobs(t, serving.Settings{})
	i := k.served(t, m.path, "still").interactive(t, program, "still", "20", "6000000")
	i.line(t, "ready")
	until(t, "the job", func() bool { return m.job("still") != nil })
	if err := i.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	i.cmd.Wait()
	until(t, "its end", func() bool { return m.job("still") == nil })
}

// TestTurns runs three jobs whose memory together exceeds what their contexts leave of the card: all end, and none runs out of memory.
func TestTurns(t *testing.T) {
	k := newKit(t)
	program := k.compile(t, "testdata/served.c")
	m := serveJobs(t, serving.Settings{})
	counts := filepath.Join(t.TempDir(), "counts")
	var group sync.WaitGroup
	for _, name := range []string{"one", "two", "three"} {
		r := k.served(t, m.path, name, "GM_FAKE_COUNTS="+counts, "GM_FAKE_CAPACITY="+fmt.Sprint(2100<<20))
		group.Go(func() { r.passes(t, program, "work", "4000", "30000000") })
	}
	group.Wait()
	sleeps := 0
	for _, text := range m.said {
		if strings.Contains(text, "sleeps") {
			sleeps++
		}
	}
	if sleeps == 0 {
		t.Errorf("none was put to sleep: %q", m.said)
	}
	t.Logf("%d sleeps", sleeps)
}

// TestGate closes the gate before a thread that waits there has seen it open.
func TestGate(t *testing.T) {
	k := newKit(t)
	k.served(t, "/none", "gate").passes(t, k.compile(t, "testdata/gate.c"))
}
