package capture

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"gm/internal/capture/ring"
	"gm/internal/cuda/fake"
	"gm/internal/nvml"
)

// fakeCards is NVML of the fake driver.
type fakeCards struct {
	*cards
	gpu    device
	counts string
}

// aloneVariable makes this test program one that runs TestCards in a process of its own: the fake NVML keeps the first file of counts.
const aloneVariable = "GM_CAPTURE_ALONE"

// TestCards asks NVML for what is in use.
func TestCards(t *testing.T) {
	if os.Getenv(aloneVariable) == "" {
		runAlone(t)
		return
	}
	open, err := openCards()
	if err != nil {
		t.Fatal(err)
	}
	c := fakeCards{cards: open, counts: os.Getenv("GM_FAKE_COUNTS")}
	for i := range c.gpu.uuid[:15] {
		c.gpu.uuid[i] = byte(0x6d + 29*i)
	}
	if c.find(c.gpu.uuid) == nil {
		t.Fatal("the card is not found")
	}
	t.Run("compare", c.testCompare)
	t.Run("context", c.testContextSize)
	t.Run("samples", c.testSamples)
	t.Run("process", c.testProcess)
	t.Run("view", c.testView)
	if err := c.close(); err != nil {
		t.Error(err)
	}
}

func runAlone(t *testing.T) {
	if _, err := built(); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	c.Env = append(os.Environ(), aloneVariable+"=1", "GM_FAKE_COUNTS="+filepath.Join(t.TempDir(), "counts"))
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// use sets the bytes of the card that this process uses.
func (c *fakeCards) use(t *testing.T, n uint64) {
	t.Helper()
	if err := fake.SetProcess(c.counts, fake.Process{PID: os.Getpid(), Used: [8]uint64{n}}); err != nil {
		t.Fatal(err)
	}
}

// testCompare has what changed since the last time told, and only that.
func (c *fakeCards) testCompare(t *testing.T) {
	card := c.find(c.gpu.uuid)
	for _, ordinal := range []int32{-1, 1} {
		last := map[int32]processSamples{}
		for i, step := range []struct {
			process uint64
			card    []sample
			pid     int
			want    []string
		}{
			{500, nil, os.Getpid(), nil},
			{500, []sample{{1, 600}, {2, 700}}, os.Getpid(), []string{"process 500", "card 700"}},
			{500, []sample{{1, 700}}, os.Getpid(), nil},
			{500, []sample{{1, 800}}, os.Getpid(), []string{"card 800"}},
			{400, []sample{{1, 800}}, os.Getpid(), []string{"process 400"}},
			{400, []sample{{1, 800}}, -1, nil},
		} {
			c.use(t, step.process)
			card.samples = step.card
			var got []string
			c.compare(step.pid, map[int32]device{ordinal: c.gpu, 7: {}}, last, func(device int32, whose uint64, used int64) {
				if device != max(ordinal, 0) {
					t.Errorf("device %d is told of as %d", ordinal, device)
				}
				got = append(got, fmt.Sprintf("%s %d", map[uint64]string{sampleCard: "card", sampleProcess: "process"}[whose], used))
			})
			if !slices.Equal(got, step.want) {
				t.Errorf("device %d, step %d: %q, want %q", ordinal, i, got, step.want)
			}
		}
	}
}

// testContextSize takes the last sample before a context for what others use, and no more than the process has beyond what is traced.
func (c *fakeCards) testContextSize(t *testing.T) {
	c.use(t, 500)
	c.find(c.gpu.uuid).samples = []sample{{10, 100}, {20, 300}}
	for _, x := range []struct {
		pid          int
		began        uint64
		used, traced int64
		want         int64
	}{
		{-1, 9, 450, 0, 0}, {-1, 10, 450, 0, 350}, {-1, 19, 450, 0, 350}, {-1, 20, 450, 0, 150}, {-1, 30, 450, 0, 150}, {-1, 30, 250, 0, 0},
		{os.Getpid(), 10, 450, 100, 350}, {os.Getpid(), 10, 450, 400, 100}, {os.Getpid(), 10, 450, 600, 0},
	} {
		if got := (asker{c.cards, x.pid}).contextSize(c.gpu.uuid, x.began, x.used, x.traced); got != x.want {
			t.Errorf("%+v: %d", x, got)
		}
	}
	if got := (asker{c.cards, -1}).contextSize([16]byte{}, 30, 450, 0); got != 0 {
		t.Errorf("%d bytes on an unknown card", got)
	}
}

// testSamples keeps the latest samples of a card.
func (c *fakeCards) testSamples(t *testing.T) {
	card := c.find(c.gpu.uuid)
	card.samples = nil
	for i := range uint64(sampleMemory + 2) {
		c.use(t, i+1)
		c.sample(time.Now())
	}
	if n := len(card.samples); n != sampleMemory || card.samples[0].used != 3 || card.samples[n-1].used != sampleMemory+2 {
		t.Errorf("%d samples, from %+v to %+v", n, card.samples[0], card.samples[n-1])
	}
}

// testProcess records samples for a process whose ring is read.
func (c *fakeCards) testProcess(t *testing.T) {
	for _, x := range []struct{ ring, over, want bool }{{ring: true, want: true}, {ring: true, over: true}, {}} {
		p := quiet(t.TempDir())
		p.over, p.journal, p.interpreter.devices[0] = x.over, new(journal), c.gpu
		if x.ring {
			p.ring = new(ring.Ring)
		}
		if p.sample(c.cards); (len(p.journal.pending) > 0) != x.want {
			t.Errorf("%+v: %d bytes pending", x, len(p.journal.pending))
		}
	}
}

// testView has the last sample of a card in the view of a process, if there is one.
func (c *fakeCards) testView(t *testing.T) {
	p := quiet(t.TempDir())
	p.interpreter.take(&ring.Record{Kind: ring.Alloc, A: 1, B: 1})
	p.interpreter.devices[0] = c.gpu
	for _, x := range []struct {
		samples []sample
		want    int64
	}{{nil, 0}, {[]sample{{1, 600}, {2, 700}}, 700}} {
		c.find(c.gpu.uuid).samples = x.samples
		if d := p.deviceViews(1, c.cards); len(d) != 1 || d[0].Used != x.want {
			t.Errorf("%v: %+v", x.samples, d)
		}
	}
}

// TestCardsDue samples once a period where there is a card, and has nothing to do where there is none.
func TestCardsDue(t *testing.T) {
	now := time.Now()
	for _, x := range []struct {
		library *nvml.Library
		ago     time.Duration
		want    bool
	}{{nil, 2 * samplePeriod, false}, {new(nvml.Library), samplePeriod - 1, false}, {new(nvml.Library), samplePeriod, true}} {
		c := &cards{library: x.library, last: now.Add(-x.ago)}
		if c.due(now) != x.want {
			t.Errorf("%+v: %v", x, !x.want)
		}
	}
	if none := new(cards); none.find([16]byte{}) != nil || none.close() != nil {
		t.Error("a card where there is none")
	}
}
