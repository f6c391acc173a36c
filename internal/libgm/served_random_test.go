package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gm/internal/cuda/fake"
	serving "gm/internal/swap/server"
	"gm/internal/swap/server/wire"
)

const (
	// contextBytes is what the fake driver takes of a card for a context.
	contextBytes = 500 << 20
	// besides is what a card has beside its contexts and one job's memory, in MiB: for keys, and for what a request and the memory server ask for
	// beyond; objectsInUse is what each client's objects may keep of it.
	besides, objectsInUse = 80, 10
	// noContext is how a client ends whose card has no room for its context.
	noContext = 4
)

// company is clients of a memory server that together exceed their cards.
type company struct {
	*memoryServer
	run     *run
	program string
	random  *rand.Rand
	seed    uint64
	cards   int
	demand  int // of each client's job on each card, in MiB
	names   []string
	quotas  map[string]int64
	clients []*companion
	started uint64
}

// companion is a client of a company. Its killed is set before it is killed.
type companion struct {
	*interactive
	name   string
	killed atomic.Bool
	late   atomic.Bool // it did not answer
	made   [2]int64    // bytes of each card for keys
}

// tally is what companies did in sum.
type tally struct{ programs, rounds, kills, sleeps, noRoom atomic.Int64 }

// TestRandomAccounts runs random programs of up to ten clients of one server (testdata/random_served.c), of which some have quotas, which together
// exceed one card or two, and are put to sleep, woken and killed at random moments. What each reads is what it wrote, none gets more than its
// quota, and none is refused memory that is there while the others sleep. Whenever they pause, the server's accounts are those of the driver.
func TestRandomAccounts(t *testing.T) {
	k := newKit(t)
	t.Parallel()
	const lanes, few = 2, 3
	program := k.compile(t, "testdata/random_served.c")
	first, long := randomTime()
	end := time.Now().Add(long)
	var n tally
	t.Run("lanes", func(t *testing.T) {
		for lane := range uint64(lanes) {
			t.Run(fmt.Sprint(lane), func(t *testing.T) {
				t.Parallel()
				for seed := first + lane; seed < first+few || time.Now().Before(end); seed += lanes {
					t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) { k.company(t, program, seed, &n) })
				}
			})
		}
	})
	t.Logf("%d programs from seed %d: %d rounds, %d sleeps, %d clients killed, %d keys found no room",
		n.programs.Load(), first, n.rounds.Load(), n.sleeps.Load(), n.kills.Load(), n.noRoom.Load())
	if n.kills.Load() == 0 || n.sleeps.Load() == 0 {
		t.Error("it was not tried out")
	}
}

// company runs the program of a seed.
func (k kit) company(t *testing.T, program string, seed uint64, n *tally) {
	c := &company{program: program, seed: seed, random: rand.New(rand.NewPCG(seed, 77)), quotas: map[string]int64{}}
	c.cards = 1 + c.random.IntN(2)
	c.demand = 32 + c.random.IntN(48)
	settings := serving.Settings{Quotas: c.quotas, Weights: map[string]int{}, Quantum: time.Duration(20+c.random.IntN(130)) * time.Millisecond}
	settings.Idle = time.Duration(c.random.IntN(2)*150) * time.Millisecond
	clients := 2 + min(c.random.IntN(9), c.random.IntN(9))
	for i := range clients {
		name := fmt.Sprint("job", i)
		c.names = append(c.names, name)
		settings.Weights[name] = 1 + c.random.IntN(3)
		if c.random.IntN(3) == 0 {
			c.quotas[name] = int64(20+c.random.IntN(c.demand-20)) << 20
		}
	}
	c.memoryServer = serveJobs(t, settings)
	capacity := int64(clients)*(contextBytes+objectsInUse<<20) + int64(besides+c.demand)<<20
	c.run = k.newRun(t, "LD_PRELOAD="+k.gate(t), "GM_SERVER="+c.path, "GM_LOG=/dev/null", "GM_FAKE_CAPACITY="+fmt.Sprint(capacity),
		"GM_FAKE_DEVICES="+fmt.Sprint(c.cards))
	for _, name := range c.names {
		x := c.start(t, name)
		c.clients = append(c.clients, x)
		x.line(t, "ready")
	}
	n.programs.Add(1)
	for range 3 {
		c.round(t, n)
		c.settle(t)
		c.replace(t)
		n.rounds.Add(1)
	}
	c.end(t, n)
}

// start starts a client of a name.
func (c *company) start(t *testing.T, name string) *companion {
	c.started++
	env := append(c.run.env[:len(c.run.env):len(c.run.env)], "GM_NAME="+name)
	r := &run{kit: c.run.kit, dir: c.run.dir, env: env}
	return &companion{name: name, interactive: r.interactive(t, c.program, fmt.Sprint(c.seed*100+c.started), fmt.Sprint(c.cards), fmt.Sprint(c.demand),
		fmt.Sprint(c.quotas[name]>>20), fmt.Sprint(c.random.IntN(2)))}
}

// tell has a client do something, and returns once it has, or has been killed.
func (x *companion) tell(t *testing.T, what string, n *tally) {
	const patience = 90 * time.Second
	late := time.AfterFunc(patience, func() {
		x.late.Store(true)
		x.cmd.Process.Kill()
	})
	defer late.Stop()
	_, _ = io.WriteString(x.in, what+"\n") // one that was killed does not answer
	var noRoom int64
	if x.out.Scan() {
		if _, err := fmt.Sscan(x.out.Text(), &x.made[0], &x.made[1], &noRoom); err != nil {
			t.Errorf("%s says %q", x.name, x.out.Text())
		}
		n.noRoom.Add(noRoom)
		return
	}
	if err := x.cmd.Wait(); x.late.Load() || !x.killed.Load() {
		t.Errorf("%s: %v, after %q; it took too long: %v\n%s", x.name, err, what, x.late.Load(), x.err)
	}
	x.killed.Store(true)
}

// round has all clients work, while others meddle with them, and waits for them.
func (c *company) round(t *testing.T, n *tally) {
	var all, others sync.WaitGroup
	for _, x := range c.clients {
		all.Go(func() { x.tell(t, "round", n) })
	}
	quiet := make(chan struct{})
	meddler := rand.New(rand.NewPCG(c.random.Uint64(), 1))
	others.Go(func() {
		for {
			select {
			case <-quiet:
				return
			case <-time.After(time.Duration(meddler.IntN(60)) * time.Millisecond):
				c.meddle(t, meddler, n)
			}
		}
	})
	if c.random.IntN(2) == 0 {
		x, when := c.clients[c.random.IntN(len(c.clients))], time.Duration(c.random.IntN(400))*time.Millisecond
		others.Go(func() {
			select {
			case <-quiet:
			case <-time.After(when):
				n.kills.Add(1)
				x.killed.Store(true)
				x.cmd.Process.Kill()
				all.Wait()
				x.cmd.Wait() // unless it was waited for because it did not answer
			}
		})
	}
	all.Wait()
	close(quiet)
	others.Wait()
	if t.Failed() {
		c.fail(t, "")
	}
}

// meddle does one thing with a client, as gmswap ctl does.
func (c *company) meddle(t *testing.T, random *rand.Rand, n *tally) {
	name := c.names[random.IntN(len(c.names))]
	switch random.IntN(4) {
	case 0, 1:
		if c.ask(wire.CtlSleep, name, 0) == nil {
			n.sleeps.Add(1)
		}
	case 2:
		_ = c.ask(wire.CtlSleep, name, 1) // it may have ended
		time.Sleep(time.Duration(random.IntN(100)) * time.Millisecond)
		_ = c.ask(wire.CtlWake, name, 0)
	case 3:
		_ = c.ask(wire.CtlWake, name, 0)
	}
	for _, j := range c.Jobs() {
		for _, x := range j.CardList() {
			if quota := c.quotas[j.NameText()]; quota > 0 && x.Here > quota {
				t.Errorf("%s has %d bytes, and a quota of %d", j.NameText(), x.Here, quota)
			}
		}
	}
}

// settle waits until the accounts are right.
func (c *company) settle(t *testing.T) {
	why := ""
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if why = c.differs(t); why == "" {
			return
		}
	}
	c.fail(t, why)
}

// differs says what is wrong with the server's accounts: that of each client and card is what the driver says that the process has, less its context
// and what it made for keys.
func (c *company) differs(t *testing.T) string {
	var text strings.Builder
	driver := c.run.counts(t)
	accounts := map[int][2]int64{}
	for _, j := range c.Jobs() {
		a := accounts[int(j.PID)]
		for _, x := range j.CardList() {
			a[cardNumber(&x)] += x.Here
		}
		accounts[int(j.PID)] = a
	}
	for _, x := range c.clients {
		if x.killed.Load() {
			continue
		}
		pid := x.cmd.Process.Pid
		taken := takenBy(&driver, pid)
		for card := range c.cards {
			if want := taken[card] - contextBytes - x.made[card]; accounts[pid][card] != want {
				fmt.Fprintf(&text, "%s (process %d) on card %d: %d bytes at the server, %d at the driver\n", x.name, pid, card, accounts[pid][card], want)
			}
		}
		delete(accounts, pid)
	}
	for pid, a := range accounts {
		fmt.Fprintf(&text, "process %d has ended, and has %d bytes\n", pid, a)
	}
	return text.String()
}

// cardNumber returns the number of a fake card, whose addresses follow each other.
func cardNumber(x *wire.Card) (number int) {
	const first = 0x1b
	_, _ = fmt.Sscanf(x.BusText(), "0000:%x:", &number)
	return number - first
}

// takenBy returns what the driver says that a process has taken of each card.
func takenBy(c *fake.Counts, pid int) (taken [2]int64) {
	for _, p := range c.Processes {
		if p.PID == pid {
			taken = [2]int64{int64(p.Used[0]), int64(p.Used[1])}
		}
	}
	return taken
}

// replace starts clients in place of those that were killed, once all memory is on the host: their contexts need room.
func (c *company) replace(t *testing.T) {
	for i, x := range c.clients {
		for tries := 0; x.killed.Load(); tries++ {
			for _, name := range c.names {
				_ = c.ask(wire.CtlSleep, name, 0) // it may have ended
			}
			next := c.start(t, x.name)
			if next.out.Scan() {
				x = next
				c.clients[i] = x
			} else if next.cmd.Wait(); next.cmd.ProcessState.ExitCode() != noContext || tries == 10 {
				c.fail(t, fmt.Sprintf("%s does not start again: %v\n%s", x.name, next.cmd.ProcessState, next.err))
			}
		}
	}
}

// end has all clients give up what they have: nothing is taken then.
func (c *company) end(t *testing.T, n *tally) {
	var all sync.WaitGroup
	for _, x := range c.clients {
		all.Go(func() { x.tell(t, "free", n) })
	}
	all.Wait()
	c.settle(t)
	driver := c.run.counts(t)
	for _, x := range c.clients {
		for card, bytes := range takenBy(&driver, x.cmd.Process.Pid) {
			if card < c.cards && bytes != contextBytes {
				t.Errorf("in the end %s has %d bytes of card %d beside its context", x.name, bytes-contextBytes, card)
			}
		}
	}
	for _, s := range c.Shares() {
		c.drop(t, s.TextText())
	}
	if left := c.Shares(); len(left) > 0 {
		t.Errorf("%d keys are left", len(left))
	}
	for _, x := range c.clients {
		x.in.Close()
		if err := x.cmd.Wait(); err != nil {
			t.Errorf("%s ends: %v\n%s", x.name, err, x.err)
		}
	}
	until(t, "the end of all jobs", func() bool { return len(c.Jobs()) == 0 })
	if t.Failed() {
		c.fail(t, "")
	}
}

// drop forgets a key.
func (c *company) drop(t *testing.T, key string) {
	conn, err := wire.Dial(c.path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	m := wire.Message{Kind: wire.CtlDrop}
	m.SetText(key)
	if err := conn.Send(&m); err != nil {
		t.Error(err)
	}
	if _, err := conn.Receive(); err != nil { // the answer: of the other card it may be gone already
		t.Error(err)
	}
}

// fail ends the test, and says what the server did.
func (c *company) fail(t *testing.T, why string) {
	var text strings.Builder
	for _, j := range c.Jobs() {
		fmt.Fprintf(&text, "%s (process %d) %v, idle for %v: %s\n", j.NameText(), j.PID, j.State, time.Duration(j.Idle), j.TextText())
		for _, x := range j.CardList() {
			fmt.Fprintf(&text, "\tof %d bytes %d are free; it has %d here and %d away\n", x.Total, x.Free, x.Here, x.Away)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	t.Fatalf("seed %d: %d clients, %d cards, demand %d MiB, quotas %v\n%s\n%s\n%s", c.seed, len(c.names), c.cards, c.demand, c.quotas, why, &text,
		strings.Join(c.said[max(0, len(c.said)-60):], "\n"))
}
