package main

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"gm/internal/cli"
	"gm/internal/swap/link"
	"gm/internal/swap/policy"
	"gm/internal/swap/scheduling"
	"gm/internal/swap/store"
	"gm/internal/swap/testbed"
	"gm/internal/units"
)

// unlimited is an amount of memory that no schedule reaches.
const unlimited = units.Bytes(1 << 60)

// hostFlags are the flags about the host that commands on graphs share.
type hostFlags struct {
	Host      units.Bytes `placeholder:"SIZE" help:"Use at most this much host memory. No limit by default."`
	Link      string      `xor:"link" placeholder:"FILE" help:"How fast copies are, as gmswap bandwidth measured it. Those of an H200 by default."`
	Bandwidth units.Bytes `xor:"link" placeholder:"SIZE" help:"Bytes a second of copies each way, such as 12GB, instead of --link."`
	Testbed   string      `placeholder:"NAME" help:"Take device memory, host memory and copies, where no other flag gives them, from the machine of a paper: a800, titan-x or v100."`
}

// fill takes what flags leave open of the memory from the testbed.
func (f *hostFlags) fill(device *units.Bytes) error {
	if f.Testbed == "" {
		return nil
	}
	t, err := testbed.Lookup(f.Testbed)
	if err != nil {
		return cli.Usage("--testbed: %v", err)
	}
	*device, f.Host = cmp.Or(*device, units.Bytes(t.Device)), cmp.Or(f.Host, units.Bytes(t.Host))
	return nil
}

// copies returns how fast copies are by the flags, or nil where none says so.
func (f *hostFlags) copies() (*link.Link, error) {
	switch {
	case f.Link != "":
		return link.Read(f.Link)
	case f.Bandwidth > 0:
		l, err := link.Even(f.Bandwidth.String()+"/s", int64(f.Bandwidth))
		if err != nil {
			return nil, cli.Usage("--bandwidth: %v", err)
		}
		return l, nil
	case f.Testbed != "":
		t, err := testbed.Lookup(f.Testbed)
		if err != nil {
			return nil, cli.Usage("--testbed: %v", err)
		}
		return t.Link()
	}
	return nil, nil
}

// load reads a graph, and returns with it what its schedules have to keep to. All GPUs of a job copy at the same time, as far as the link
// has figures of them.
func (f *hostFlags) load(graph string, device units.Bytes) (*store.Graph, scheduling.Limits, error) {
	figures, err := f.copies()
	if err != nil {
		return nil, scheduling.Limits{}, err
	}
	if figures == nil {
		figures = link.Default()
	}
	g, err := readGraph(graph)
	if err != nil {
		return nil, scheduling.Limits{}, err
	}
	return g, scheduling.Limits{Device: int64(device), Host: int64(orUnlimited(f.Host)), Link: figures, GPUs: int(g.Meta.WorldSize)}, nil
}

func orUnlimited(size units.Bytes) units.Bytes {
	if size == 0 {
		return unlimited
	}
	return size
}

// readLink returns the figures of a file, or those of an H200 for none.
func readLink(file string) (*link.Link, error) {
	if file == "" {
		return link.Default(), nil
	}
	return link.Read(file)
}

// readGraph reads a graph that holds a step.
func readGraph(name string) (*store.Graph, error) {
	g, err := store.ReadGraph(name)
	if err == nil && len(g.Ops) == 0 {
		err = fmt.Errorf("graph %s: has no operators", g.File)
	}
	return g, err
}

// lookupPolicy returns the policy that a flag names.
func lookupPolicy(name string) (policy.Policy, error) {
	p, err := policy.Lookup(name)
	if err != nil {
		return p, cli.Usage("--policy: %v", err)
	}
	return p, nil
}

// testbedHelp lists the testbeds.
func testbedHelp() string {
	var text strings.Builder
	text.WriteString("Testbeds:")
	for _, t := range testbed.All() {
		fmt.Fprintf(&text, "\n\n%s: %s.", t.Name, t.About)
	}
	return text.String()
}

// policyHelp lists the policies.
func policyHelp() string {
	var text strings.Builder
	text.WriteString("Policies:")
	for _, p := range policy.Policies() {
		fmt.Fprintf(&text, "\n\n%s: %s", p.Name, p.About)
	}
	return text.String()
}

// place names an operator of a graph for people.
func place(g *store.Graph, op int32) string {
	o := &g.Ops[op]
	name := o.Name
	if name == "" {
		name = "operator"
	}
	return fmt.Sprintf("%s (%v, operator %d of %d)", name, o.Phase, op, len(g.Ops))
}

// tooShort says in words for people that a policy found no schedule.
func tooShort(g *store.Graph, e *policy.ShortError, l scheduling.Limits) error {
	memory, limit := "device", l.Device
	if e.Host {
		memory, limit = "host", l.Host
	}
	where := ""
	if e.Op >= 0 && int(e.Op) < len(g.Ops) {
		where = " at " + place(g, e.Op)
	}
	return fmt.Errorf("graph %s: policy %s has no schedule within %s of %s memory: %s more would be needed%s",
		g.File, e.Policy, units.Bytes(limit), memory, units.Bytes(e.Bytes), where)
}

// timeText returns a time with four digits.
func timeText(d time.Duration) string {
	switch {
	case d == 0:
		return "0 s"
	case d >= time.Second:
		return digits(d.Seconds()) + " s"
	case d >= time.Millisecond:
		return digits(d.Seconds()*1e3) + " ms"
	}
	return digits(d.Seconds()*1e6) + " us"
}

// digits returns a number of 0.001 or more with four digits, and with all of those before the point.
func digits(x float64) string {
	decimals := 3
	for ; decimals > 0 && x >= 9.9995; x /= 10 {
		decimals--
	}
	return strconv.FormatFloat(x*math.Pow10(3-decimals), 'f', decimals, 64)
}

// change returns by how much a time is more than another one.
func change(now, before time.Duration) string {
	if before == 0 {
		return "-"
	}
	return fmt.Sprintf("%+.1f%%", 100*(float64(now)/float64(before)-1))
}
