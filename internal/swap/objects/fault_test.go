package objects

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

const faulty = "GM_OBJECTS_FAULTY"

// TestFaults has calls of the driver fail, the first ones, some later ones and all from one on. The store says so, and goes on: what it has is what was
// written, or an error.
func TestFaults(t *testing.T) {
	for _, call := range []string{
		"cuMemCreate", "cuMemMap", "cuMemSetAccess", "cuMemUnmap", "cuMemAddressReserve", "cuMemAddressFree", "cuMemRelease", "cuMemHostRegister",
		"cuMemcpyDtoHAsync", "cuMemcpyHtoDAsync", "cuMemcpyDtoDAsync", "cuEventRecord", "cuStreamWaitEvent",
	} {
		var fail []string
		for _, n := range []int{1, 2, 5, 9, 14, 30, 50} {
			fail = append(fail, fmt.Sprintf("%s:%d=1", call, n))
		}
		t.Run(call, func(t *testing.T) { failing(t, strings.Join(fail, ",")) })
	}
	t.Run("copies-that-nothing-stands-for", func(t *testing.T) {
		fail := []string{"cuCtxSynchronize:1+=1"}
		for n := 5; n < 400; n += 7 {
			fail = append(fail, fmt.Sprintf("cuEventRecord:%d=1", n))
		}
		failing(t, strings.Join(fail, ","), "GM_FAKE_WORK=cuMemcpyDtoHAsync=20ms,cuMemcpyHtoDAsync=20ms")
	})
	t.Run("all-copies", func(t *testing.T) { failing(t, "cuMemcpyDtoHAsync:20+=1") })
	t.Run("all-memory", func(t *testing.T) { failing(t, "cuMemCreate:9+=1,cuMemMap:12+=1") })
	t.Run("no-pinned-memory", func(t *testing.T) { failing(t, "cuMemHostRegister:2+=2") })
}

func failing(t *testing.T, calls string, more ...string) {
	t.Parallel()
	cmd := exec.Command(os.Args[0], "-test.run=TestFaulty$", "-test.timeout=60s", "-test.count=1")
	cmd.Env = append(append(os.Environ(), faulty+"=1", "GM_FAKE_FAIL="+calls), more...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestFaulty is a process in which calls fail.
func TestFaulty(t *testing.T) {
	if os.Getenv(faulty) == "" {
		t.Skip("TestFaults runs it")
	}
	s, err := Open(openDevice(t), Options{Limit: 64 * mib, Host: 160 * mib, Folder: t.TempDir(), Peers: []int{1}, PeerLimit: 16 * mib})
	if err != nil {
		t.Skip("it does not open: ", err)
	}
	p := newProgram(t, s, 1)
	p.failing = true
	for range 150 {
		p.step()
	}
	for _, o := range p.objects {
		for o.pins > 0 && s.Put(o.id, Unknown, o.s) == nil {
			o.pins--
		}
	}
	for len(p.objects) > 0 && p.failures < 500 {
		p.free(0)
	}
	t.Logf("%d calls failed; %+v", p.failures, s.Stats())
	if err := s.Close(); err != nil && !strings.Contains(err.Error(), "cu") {
		t.Error(err)
	}
	if err := s.Close(); !errors.Is(err, errClosed) {
		t.Error(err)
	}
}
