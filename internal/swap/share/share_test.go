package share

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gm/internal/cuda"
	"gm/internal/cuda/driver"
	"gm/internal/cuda/fake"
	"gm/internal/swap/server"
	"gm/internal/swap/server/wire"
)

// process, in the environment, has the test be a process of its own that does what the words of it say.
const process = "GM_SHARE_TEST"

func TestMain(m *testing.M) {
	os.Exit(fake.Rerun(func() int {
		if words := strings.Fields(os.Getenv(process)); len(words) > 0 {
			if err := act(words); err != nil {
				fmt.Println("failed:", err)
				return 1
			}
			return 0
		}
		return m.Run()
	}))
}

func open() (*driver.Device, error) {
	l, err := driver.Load()
	if err != nil {
		return nil, err
	}
	return l.Open(0)
}

func contents(key string, size int) []byte {
	return bytes.Repeat([]byte(key+"."), size/(len(key)+1)+1)[:size]
}

// act is a process: SOCKET KEY SIZE STEP. It stops after a step, to be killed there. With the step "serve" it is a server that nothing
// outlives; with "refused" it ends once a server refuses the memory.
func act(words []string) error {
	if words[3] == "serve" {
		return actServer(words[0])
	}
	path, key, step, size := words[0], words[1], words[3], 0
	if _, err := fmt.Sscan(words[2], &size); err != nil {
		return err
	}
	stop := func(at string) {
		if at == step {
			fmt.Println("at", at)
			time.Sleep(time.Minute)
		}
	}
	dev, err := open()
	if err != nil {
		return err
	}
	stop("start")
	m, err := Open(path, dev, key)
	if err != nil {
		return err
	}
	stop("open")
	if m.Size() == 0 {
		if err := m.Make(int64(size)); err != nil {
			return err
		}
		stop("make")
		if err := m.Write(0, contents(key, size)); err != nil {
			return err
		}
		stop("write")
		if err := m.Freeze(); err != nil {
			return err
		}
	}
	if err := check(dev, m, key, size); err != nil {
		return err
	}
	stop("frozen")
	if step == "refused" {
		fmt.Println("at refused")
		return ended(m)
	}
	if step == "spoil" {
		fmt.Println("at spoil")
		return dev.MemcpyHtoD(m.Pointer(), []byte("x")) // it does not return
	}
	return m.Close()
}

// ended waits until a server has refused the memory.
func ended(m *Memory) error {
	select {
	case <-m.use.done:
		return nil
	case <-time.After(20 * time.Second):
		return fmt.Errorf("%s is not refused", m.key)
	}
}

func actServer(path string) error {
	l, err := wire.Listen(path)
	if err != nil {
		return err
	}
	fmt.Println("at serve")
	return server.New(server.Settings{Quantum: time.Hour, Host: 1 << 30}, func(string) {}).Serve(l)
}

func check(dev *driver.Device, m *Memory, key string, size int) error {
	got := make([]byte, size)
	if err := dev.MemcpyDtoH(got, m.Pointer()); err != nil {
		return err
	}
	if !m.Frozen() || !bytes.Equal(got, contents(key, size)) {
		return fmt.Errorf("%s does not hold what was written", key)
	}
	return nil
}

func serve(t *testing.T) (*server.Server, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "socket")
	l, err := wire.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	s := server.New(server.Settings{Quantum: time.Hour, Host: 1 << 30}, func(string) {})
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		l.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return s, path
}

// start starts a process, and waits until it is at its step.
func start(t *testing.T, path, key string, size int, step string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %d %s", process, path, key, size, step))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); step != "end" && line != "at "+step+"\n" {
		t.Fatalf("%q, %v", line, err)
	}
	return cmd
}

func kill(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait() // it was killed
}

func uses(s *server.Server) (n int64) {
	for _, m := range s.Shares() {
		n += m.Amount
	}
	return n
}

func until(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s does not happen", what)
		}
	}
}

const size = 5<<20 + 3

// TestKilled kills a process at each of its steps. The next one makes the memory or finds it, whole; no use is left.
func TestKilled(t *testing.T) {
	dev, err := open()
	if err != nil {
		t.Fatal(err)
	}
	s, path := serve(t)
	for _, step := range []string{"start", "open", "make", "write", "frozen"} {
		kill(t, start(t, path, step, size, step))
		until(t, "the end of the use", func() bool { return uses(s) == 0 })
		if n := len(s.Shares()); n > 0 != (step == "frozen") {
			t.Errorf("%s: %d keys", step, n)
		}
		m, err := Open(path, dev, step)
		if err != nil {
			t.Fatal(err)
		}
		if found := m.Size() > 0; found != (step == "frozen") {
			t.Errorf("%s: the memory is there: %v", step, found)
		}
		if m.Size() > 0 {
			if err := check(dev, m, step, size); err != nil {
				t.Error(err)
			}
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestReadOnly has a process write where it must not: it dies, and the contents stay.
func TestReadOnly(t *testing.T) {
	dev, err := open()
	if err != nil {
		t.Fatal(err)
	}
	_, path := serve(t)
	first := start(t, path, "weights", size, "spoil") // the one that made it
	if err := first.Wait(); err == nil {
		t.Error("who made the memory could write after it was frozen")
	}
	second := start(t, path, "weights", size, "spoil")
	if err := second.Wait(); err == nil {
		t.Error("another process could write")
	}
	m, err := Open(path, dev, "weights")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if err := check(dev, m, "weights", size); err != nil {
		t.Error(err)
	}
}

// TestWait has others wait while one makes the memory; the next of them makes it when that one is killed.
func TestWait(t *testing.T) {
	s, path := serve(t)
	first := start(t, path, "key", size, "make")
	var others []*exec.Cmd
	for range 3 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s key %d end", process, path, size))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		others = append(others, cmd)
	}
	time.Sleep(100 * time.Millisecond)
	if n := len(s.Shares()); n > 0 {
		t.Errorf("%d keys are there before any was made", n)
	}
	kill(t, first)
	for _, cmd := range others {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	if all := s.Shares(); len(all) != 1 || all[0].Cards[0].Here != 6<<20 {
		t.Errorf("%d keys", len(all))
	}
}

// TestRandom opens, makes, closes and drops keys at random, as several processes do, beside a plain account of it.
func TestRandom(t *testing.T) {
	dev, err := open()
	if err != nil {
		t.Fatal(err)
	}
	s, path := serve(t)
	free, _, err := dev.MemInfo()
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	type use struct {
		*Memory
		key  string
		size int
	}
	var all []use
	made := map[string]int{} // bytes
	for range 400 {
		key := fmt.Sprint("key", r.IntN(5))
		switch r.IntN(5) {
		case 0, 1:
			m, err := Open(path, dev, key)
			if err != nil {
				t.Fatal(err)
			}
			if (m.Size() > 0) != (made[key] > 0) {
				t.Fatalf("%s has %d bytes, want %d", key, m.Size(), made[key])
			}
			if m.Size() == 0 {
				made[key] = 1 + r.IntN(4<<20)
				for _, err := range []error{m.Make(int64(made[key])), m.Write(0, contents(key, made[key])), m.Freeze()} {
					if err != nil {
						t.Fatal(err)
					}
				}
			}
			all = append(all, use{m, key, made[key]})
		case 2, 3:
			if len(all) == 0 {
				continue
			}
			i := r.IntN(len(all))
			if err := check(dev, all[i].Memory, all[i].key, all[i].size); err != nil {
				t.Fatal(err)
			}
			if err := all[i].Close(); err != nil {
				t.Fatal(err)
			}
			all = append(all[:i], all[i+1:]...)
		default:
			if made[key] > 0 && r.IntN(3) == 0 {
				drop(t, path, key)
				delete(made, key)
			}
		}
		if n := len(s.Shares()); n != len(made) {
			t.Fatalf("%d keys, want %d", n, len(made))
		}
	}
	for _, u := range all {
		if err := check(dev, u.Memory, u.key, u.size); err != nil {
			t.Error(err)
		}
		if err := u.Close(); err != nil {
			t.Error(err)
		}
	}
	until(t, "the end of all uses", func() bool { return uses(s) == 0 })
	for _, m := range s.Shares() {
		want := (int64(made[m.TextText()]) + cuda.Granularity - 1) / cuda.Granularity * cuda.Granularity
		if m.Cards[0].Here != want {
			t.Errorf("%s has %d bytes in the account, want %d", m.TextText(), m.Cards[0].Here, want)
		}
	}
	if now, _, err := dev.MemInfo(); err != nil || now != free {
		t.Errorf("%d bytes are free, %d were: %v", now, free, err)
	}
}

// listed asks a server for the uses of a key, -1 if there is none.
func listed(path, key string) int64 {
	conn, err := wire.Dial(path)
	if err != nil {
		return -1
	}
	defer conn.Close()
	_ = conn.Send(&wire.Message{Kind: wire.List}) // then nothing comes
	for {
		m, err := conn.Receive()
		if err != nil || m.Kind == wire.End {
			return -1
		}
		if m.Kind == wire.Shared && m.TextText() == key {
			return m.Amount
		}
	}
}

// TestNextServer kills servers that keep nothing. Each next one gets the memory from who has it open, with all uses, until it is dropped.
func TestNextServer(t *testing.T) {
	dev, err := open()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "socket")
	serving := start(t, path, "-", 0, "serve")
	again := func() {
		kill(t, serving)
		serving = start(t, path, "-", 0, "serve")
	}
	maker := start(t, path, "key", size, "make") // which the end of the server does not hurt
	m, err := Open(path, dev, "other")
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{m.Make(size), m.Write(0, contents("other", size))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	kill(t, serving)
	if err := m.Freeze(); err != nil {
		t.Fatalf("there was no server to freeze it at: %v", err)
	}
	serving = start(t, path, "-", 0, "serve")
	until(t, "the first offer", func() bool { return listed(path, "other") == 1 })
	kill(t, maker)
	second := start(t, path, "other", size, "frozen")
	for range 2 {
		again()
		until(t, "the next offer", func() bool { return listed(path, "other") == 2 })
	}
	kill(t, second)
	until(t, "the end of a use", func() bool { return listed(path, "other") == 1 })
	drop(t, path, "other")
	again()
	if err := ended(m); err != nil {
		t.Error(err)
	}
	if n := listed(path, "other"); n >= 0 {
		t.Errorf("what was dropped has %d uses", n)
	}
	if err := check(dev, m, "other", size); err != nil {
		t.Error(err)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}

// TestOtherMemory has another process make memory of a key before who has that of a former server comes back: that one is not counted.
func TestOtherMemory(t *testing.T) {
	dev, err := open()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "socket")
	serving := start(t, path, "-", 0, "serve")
	old := start(t, path, "key", size, "refused")
	if err := old.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	kill(t, serving)
	start(t, path, "-", 0, "serve")
	m, err := Open(path, dev, "key")
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{m.Make(size), m.Write(0, contents("key", size)), m.Freeze(), old.Process.Signal(syscall.SIGCONT)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := old.Wait(); err != nil {
		t.Errorf("who has the old memory is not refused: %v", err)
	}
	if n := listed(path, "key"); n != 1 {
		t.Errorf("%d uses", n)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}

// files returns how many this process has open.
func files(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// TestCloseMeanwhile closes memory while servers come and go. No file stays open.
func TestCloseMeanwhile(t *testing.T) {
	dev, err := open()
	if err != nil {
		t.Fatal(err)
	}
	path, before := filepath.Join(t.TempDir(), "socket"), files(t)
	for i := range 6 {
		serving := start(t, path, "-", 0, "serve")
		m, err := Open(path, dev, "key")
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range []error{m.Make(1), m.Freeze()} {
			if err != nil {
				t.Fatal(err)
			}
		}
		kill(t, serving)
		serving = start(t, path, "-", 0, "serve")
		time.Sleep(time.Duration(i) * pause / 4)
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		kill(t, serving)
	}
	if n := files(t); n > before {
		t.Errorf("%d files are open, %d were", n, before)
	}
}

func drop(t *testing.T, path, key string) {
	t.Helper()
	conn, err := wire.Dial(path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	m := wire.Message{Kind: wire.CtlDrop}
	m.SetText(key)
	if err := conn.Send(&m); err != nil {
		t.Fatal(err)
	}
	if answer, err := conn.Receive(); err != nil || answer.TextText() != "" || answer.Amount == 0 {
		t.Fatalf("drop %s: %q, %v", key, answer.TextText(), err)
	}
}
