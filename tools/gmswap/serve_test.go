package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gm/internal/cuda/driver"
	"gm/internal/cuda/fake"
	"gm/internal/swap/server/hold"
	"gm/internal/swap/server/wire"
	"gm/internal/swap/share"
)

// asTool, in the environment, has the test be gmswap. Holders that it starts are gmswap in any case.
const asTool = "GM_GMSWAP_TEST"

func TestMain(m *testing.M) {
	os.Exit(fake.Rerun(func() int {
		if os.Getenv(asTool) != "" || hold.Asked(os.Args) {
			main()
		}
		return m.Run()
	}))
}

// served is a socket at which one gmswap serve follows the other.
type served struct {
	t    *testing.T
	path string
	cmd  *exec.Cmd
	mu   sync.Mutex // held while the killer works
}

func newServed(t *testing.T) *served {
	s := &served{t: t, path: filepath.Join(t.TempDir(), "socket")}
	t.Cleanup(func() {
		s.kill()
		for _, pid := range s.holders() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return s
}

// start starts a server, and waits until it serves.
func (s *served) start() {
	s.t.Helper()
	must(s.t, s.run(s.command(), os.Environ()))
}

func (s *served) command() *exec.Cmd {
	return exec.Command(os.Args[0], "serve", "--host", "1G", "--socket", s.path)
}

func (s *served) run(cmd *exec.Cmd, environment []string) error {
	cmd.Env = append(environment, asTool+"=1")
	out, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	s.cmd = cmd
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return fmt.Errorf("start a server, which said %q: %w", line, err)
		}
		if strings.Contains(line, "serves at") {
			break
		}
	}
	go io.Copy(io.Discard, lines)
	return nil
}

func (s *served) kill() {
	if s.cmd == nil {
		return // none was started
	}
	_ = s.cmd.Process.Kill() // it may have ended
	_ = s.cmd.Wait()
}

// stop ends the server in order.
func (s *served) stop(signal os.Signal) {
	s.t.Helper()
	must(s.t, s.cmd.Process.Signal(signal))
	if err := s.cmd.Wait(); err != nil {
		s.t.Error(err)
	}
}

// holders returns the holders of the socket.
func (s *served) holders() (pids []int) {
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	must(s.t, err)
	for _, name := range lines {
		text, _ := os.ReadFile(name) // its process may have ended
		if words := bytes.Split(text, []byte{0}); len(words) == 4 && string(words[1]) == hold.Word && string(words[2]) == s.path {
			pid := 0
			fmt.Sscanf(name, "/proc/%d", &pid)
			pids = append(pids, pid)
		}
	}
	return pids
}

// memories returns how many descriptors of memory a process has.
func memories(pid int) (n int) {
	all, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	for _, name := range all {
		if target, _ := os.Readlink(name); strings.HasPrefix(target, "/memfd:") {
			n++
		}
	}
	return n
}

// uses returns the uses of each key. Nil: there is no server.
func (s *served) uses() map[string]int {
	conn, err := wire.Dial(s.path)
	if err != nil {
		return nil
	}
	defer conn.Close()
	_ = conn.Send(&wire.Message{Kind: wire.List}) // then nothing comes
	all := map[string]int{}
	for {
		m, err := conn.Receive()
		switch {
		case err != nil:
			return nil
		case m.Kind == wire.End:
			return all
		case m.Kind == wire.Shared:
			all[m.TextText()] = int(m.Amount)
		}
	}
}

// drop drops a key, which it may take several servers to do.
func (s *served) drop(key string) {
	s.t.Helper()
	until(s.t, "the drop of "+key, func() bool {
		conn, err := wire.Dial(s.path)
		if err != nil {
			return false
		}
		defer conn.Close()
		m := wire.Message{Kind: wire.CtlDrop}
		m.SetText(key)
		_ = conn.Send(&m) // then no answer comes
		_, err = conn.Receive()
		return err == nil
	})
}

func (s *served) has(want map[string]int) {
	s.t.Helper()
	var got map[string]int
	until(s.t, fmt.Sprint("the list of ", want), func() bool {
		got = s.uses()
		same := got != nil && len(got) == len(want)
		for key, n := range want {
			m, ok := got[key]
			same = same && ok && m == n
		}
		return same
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func until(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s does not happen", what)
		}
	}
}

const size = 1000

func contents(key string) []byte { return bytes.Repeat([]byte(key+"."), size)[:size] }

func device(t *testing.T) *driver.Device {
	t.Helper()
	library, err := driver.Load()
	must(t, err)
	dev, err := library.Open(0)
	must(t, err)
	return dev
}

// opened opens a key and makes its memory if it is not there. An error is that of the server's end.
func opened(t *testing.T, dev *driver.Device, path, key string) (m *share.Memory, found bool, err error) {
	t.Helper()
	m, err = share.Open(path, dev, key)
	if err != nil {
		return nil, false, err
	}
	if found = m.Size() > 0; !found {
		must(t, errors.Join(m.Make(size), m.Write(0, contents(key)), m.Freeze()))
	}
	got := make([]byte, size)
	must(t, dev.MemcpyDtoH(got, m.Pointer()))
	if !bytes.Equal(got, contents(key)) {
		t.Errorf("%s does not hold what was written", key)
	}
	return m, found, nil
}

// replace kills the server and starts another one.
func (s *served) replace(pause time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kill()
	time.Sleep(pause)
	return s.run(s.command(), os.Environ())
}

// killer kills servers at random moments, until the test ends or calls the function that it returns. One runs then.
func (s *served) killer(r *rand.Rand) (stop func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-end:
				return
			case <-time.After(time.Duration(r.IntN(60)) * time.Millisecond):
			}
			if err := s.replace(time.Duration(r.IntN(10)) * time.Millisecond); err != nil {
				s.t.Error(err)
				return
			}
		}
	}()
	stop = sync.OnceFunc(func() {
		close(end)
		<-ended
	})
	s.t.Cleanup(stop)
	return stop
}

// keys are the keys of a socket as a test accounts for them.
type keys struct {
	*served
	dev     *driver.Device
	open    map[string][]*share.Memory
	made    map[string]bool
	dropped []*share.Memory
}

// TestKilledServers opens, makes, closes and drops keys at random while servers are killed and others follow. What was shared is there, whole,
// with all its uses; in the end nothing is left.
func TestKilledServers(t *testing.T) {
	dev := device(t)
	free, _, err := dev.MemInfo()
	must(t, err)
	k := &keys{served: newServed(t), dev: dev, open: map[string][]*share.Memory{}, made: map[string]bool{}}
	k.start()
	stop := k.killer(rand.New(rand.NewPCG(1, 2)))
	r := rand.New(rand.NewPCG(3, 4))
	for end, n := time.Now().Add(2*time.Second), 0; time.Now().Before(end) || n < 50; n++ {
		k.act(fmt.Sprint("key", r.IntN(4)), r.IntN(10))
	}
	stop()
	k.close()
	k.stop(syscall.SIGINT)
	until(t, "the end of the holder", func() bool { return len(k.holders()) == 0 })
	if left, err := filepath.Glob(k.path + "*"); err != nil || len(left) != 1 { // the lock
		t.Errorf("%v, %v", left, err)
	}
	if now, _, err := dev.MemInfo(); err != nil || now != free {
		t.Errorf("%d bytes are free, %d were: %v", now, free, err)
	}
}

// act does something with a key, by a number below 10.
func (k *keys) act(key string, what int) {
	k.t.Helper()
	switch {
	case what < 5 && len(k.open[key]) < 4:
		k.use(key)
	case what < 9 && len(k.open[key]) > 0:
		must(k.t, k.open[key][0].Close())
		k.open[key] = k.open[key][1:]
	case k.made[key] && len(k.open[key]) == 0:
		k.drop(key)
		k.made[key] = false
	case k.made[key]:
		k.dropUsed(key)
	}
}

// use opens a key, where there is a server, and waits until one has its memory.
func (k *keys) use(key string) {
	k.t.Helper()
	m, found, err := opened(k.t, k.dev, k.path, key)
	if err != nil {
		time.Sleep(time.Millisecond) // there is no server
		return
	}
	if found != k.made[key] {
		k.t.Errorf("%s is there: %v, want %v", key, found, k.made[key])
	}
	k.open[key] = append(k.open[key], m)
	until(k.t, "the first server that has it", func() bool { return k.uses()[key] > 0 })
	k.made[key] = true
}

// dropUsed drops a key that is open, while no server is killed: who is not connected then would bring it back.
func (k *keys) dropUsed(key string) {
	k.t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	until(k.t, "the return of all", func() bool { return k.uses()[key] == len(k.open[key]) })
	k.drop(key)
	k.dropped, k.open[key], k.made[key] = append(k.dropped, k.open[key]...), nil, false
}

// close closes all memory, once the server and its holder have what is shared.
func (k *keys) close() {
	k.t.Helper()
	want := map[string]int{}
	for key, there := range k.made {
		if there {
			want[key] = len(k.open[key])
		}
		k.dropped = append(k.dropped, k.open[key]...)
	}
	k.has(want)
	until(k.t, "one holder of all keys", func() bool {
		all := k.holders()
		return len(all) == 1 && memories(all[0]) == len(want)
	})
	for _, m := range k.dropped {
		must(k.t, m.Close())
	}
	for key := range want {
		want[key] = 0
	}
	k.has(want)
}

// killHolder kills the only holder.
func (s *served) killHolder() {
	s.t.Helper()
	all := s.holders()
	if len(all) != 1 {
		s.t.Fatalf("%d holders", len(all))
	}
	must(s.t, syscall.Kill(all[0], syscall.SIGKILL))
	until(s.t, "the end of the holder", func() bool { return syscall.Kill(all[0], 0) == syscall.ESRCH })
}

// made makes memory of a key that is not there.
func (s *served) made(dev *driver.Device, key string) *share.Memory {
	s.t.Helper()
	m, found, err := opened(s.t, dev, s.path, key)
	must(s.t, err)
	if found {
		s.t.Errorf("%s was there", key)
	}
	return m
}

// leave makes memory of keys that no process has open.
func (s *served) leave(dev *driver.Device, keys ...string) {
	s.t.Helper()
	for _, key := range keys {
		must(s.t, s.made(dev, key).Close())
	}
}

// TestHolderKilled kills holders: alone, after which the next has all, and with the server, which costs what no process has open.
func TestHolderKilled(t *testing.T) {
	dev := device(t)
	s := newServed(t)
	s.start()
	used := s.made(dev, "used")
	t.Cleanup(func() { used.Close() })
	s.leave(dev, "unused")
	s.killHolder()
	s.leave(dev, "last")
	s.kill()
	s.start()
	s.has(map[string]int{"used": 1, "unused": 0, "last": 0})
	s.killHolder()
	s.kill()
	s.start()
	s.has(map[string]int{"used": 1})
	s.stop(syscall.SIGTERM)
	until(t, "the end of the holder", func() bool { return len(s.holders()) == 0 })
	s.start()
	s.has(map[string]int{"used": 1}) // who has it open gives it to the next server
	s.drop("used")
	s.kill()
	until(t, "the end of the holder", func() bool { return len(s.holders()) == 0 })
}

// TestHolderKilledBeforeDrop has a drop be the first that meets the end of the holder: the next holder has the other keys.
func TestHolderKilledBeforeDrop(t *testing.T) {
	dev := device(t)
	s := newServed(t)
	s.start()
	s.leave(dev, "a", "b")
	s.killHolder()
	s.drop("a")
	s.leave(dev, "c")
	s.kill()
	s.start()
	s.has(map[string]int{"b": 0, "c": 0})
	s.killHolder()
	s.stop(syscall.SIGINT)
}

// TestSystemd has a fake of systemd store what is shared, and start the server again after SIGKILL and SIGTERM.
func TestSystemd(t *testing.T) {
	dev := device(t)
	s := newServed(t)
	d := newSystemd(t)
	d.start(s, 0)
	used, _, err := opened(t, dev, s.path, "used")
	must(t, err)
	odd := strings.Repeat("ü:=", 60)
	other, _, err := opened(t, dev, s.path, odd)
	must(t, err)
	must(t, other.Close())
	all := map[string]int{"used": 1, odd: 0}
	for _, signal := range []os.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGKILL} {
		must(t, s.cmd.Process.Signal(signal))
		_ = s.cmd.Wait()       // it was killed
		d.start(s, 2*len(all)) // memory and a record for each key
		s.has(all)
	}
	s.drop("used")
	s.kill()
	d.start(s, 2)
	delete(all, "used")
	s.has(all)
	must(t, used.Close())
	if len(s.holders()) > 0 {
		t.Error("there is a holder under systemd")
	}
}

// TestSystemdWithoutStore has a holder keep what is shared where systemd has no store for the service, or is too old to say so.
func TestSystemdWithoutStore(t *testing.T) {
	dev := device(t)
	for _, store := range []string{"FDSTORE=0", "FDSTORE="} {
		s := newServed(t)
		d := newSystemd(t)
		d.store = store
		d.start(s, 0)
		s.leave(dev, "key"+store)
		s.kill()
		d.start(s, 0)
		s.has(map[string]int{"key" + store: 0})
		s.stop(syscall.SIGTERM)
		until(t, "the end of the holder", func() bool { return len(s.holders()) == 0 })
	}
}
