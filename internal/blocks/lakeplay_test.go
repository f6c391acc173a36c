package blocks

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"gm/internal/cuda"
	"gm/internal/cuda/sim"
)

// lakeCase is a sequence of requests to one of the GMLake allocators, and the blocks that it must lead to.
//
// A step is a=SIZE, a request in MiB that a names, a=SIZE@STREAM, a=SIZE%POOL, a=SIZE! for one that must fail, -a for its free, and drop
// for Empty. In gmlake's picture p0:4=a is a primitive block of 4 MiB in use by a, p1:6 a free one, and s0:p0+p1 a stitched one over both.
// In gmlake-code's the segments stand in a row with their blocks, as in 4=a 16, and s22 is a stitched one of 22 MiB.
type lakeCase struct {
	about    string
	settings string
	capacity int64 // MiB; 0 for none
	steps    string
	want     string
	created  int64 // MiB of chunks that were created in all
}

// played is an allocator that a lakeCase goes through.
type played interface {
	Allocator
	picture(names map[cuda.Ptr]string) string
}

// playLake runs the cases on an allocator of the registry.
func playLake(t *testing.T, allocator string, cases []lakeCase) {
	for _, c := range cases {
		t.Run(c.about, func(t *testing.T) {
			text := allocator
			if c.settings != "" {
				text += ":" + c.settings
			}
			spec, err := ParseSpec(text)
			if err != nil {
				t.Fatal(err)
			}
			dev := sim.New(c.capacity<<20, sim.H200())
			a := spec.open(t, dev).(played)
			if got := a.picture(playSteps(t, a, c.steps)); got != c.want {
				t.Errorf("%s\nleads to %s\nwant     %s", c.steps, got, c.want)
			}
			if got := dev.Calls(sim.Create) * chunkSize >> 20; got != c.created {
				t.Errorf("%s: %d MiB were created, want %d", c.steps, got, c.created)
			}
		})
	}
}

// playSteps returns the names by address of what is in use at the end.
func playSteps(t *testing.T, a Allocator, steps string) map[cuda.Ptr]string {
	t.Helper()
	names, at := map[cuda.Ptr]string{}, map[string]cuda.Ptr{}
	for _, step := range strings.Fields(steps) {
		if step == "drop" {
			if err := a.Empty(); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if name, found := strings.CutPrefix(step, "-"); found {
			if err := a.Free(at[name]); err != nil {
				t.Fatalf("%s: %v", step, err)
			}
			delete(names, at[name])
			continue
		}
		name, size, _ := strings.Cut(step, "=")
		size, fails := strings.CutSuffix(size, "!")
		size, stream, _ := strings.Cut(size, "@")
		size, pool, _ := strings.Cut(size, "%")
		p, err := a.Malloc(number(t, size)<<20, cuda.Stream(number(t, "0"+stream)), Pool(number(t, "0"+pool)))
		if fails {
			if !errors.Is(err, cuda.ErrOutOfMemory) {
				t.Fatalf("%s: %v, want an error for lack of memory", step, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", step, err)
		}
		names[p], at[name] = name, p
	}
	return names
}

func number(t *testing.T, text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// tenantOf is "=name" for a block that is in use, by its name or that of the block that maps it.
func tenantOf(name string, active bool) string {
	if name == "" && active {
		name = "?"
	}
	if name == "" {
		return ""
	}
	return "=" + name
}

func (g *GMLake) picture(names map[cuda.Ptr]string) string {
	users := map[int32]string{}
	var stitched []string
	for id, s := range g.stitched {
		if s.size == 0 {
			continue
		}
		parts := make([]string, len(s.parts))
		for i, part := range s.parts {
			parts[i] = fmt.Sprintf("p%d", part)
			if names[s.ptr] != "" {
				users[part] = names[s.ptr]
			}
		}
		stitched = append(stitched, fmt.Sprintf("s%d:%s%s", id, strings.Join(parts, "+"), tenantOf(names[s.ptr], false)))
	}
	var all []string
	for id, p := range g.prims {
		if len(p.chunks) == 0 {
			continue
		}
		name := names[p.ptr] + users[int32(id)]
		all = append(all, fmt.Sprintf("p%d:%d%s", id, p.size()>>20, tenantOf(name, p.active)))
	}
	return strings.Join(append(all, stitched...), " ")
}
