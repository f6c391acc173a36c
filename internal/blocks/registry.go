package blocks

import (
	"fmt"
	"slices"
	"strings"

	"gm/internal/cuda"
	"gm/internal/torch/allocconf"
)

// registry lists the allocators in the order in which tables show them. A new allocator is its own file and a line here.
var registry = [...]*Entry{
	&floorEntry,
	&plannedEntry,
	&cyclicEntry,
	&stitchEntry,
	&gmlakeEntry,
	&gmlakeCodeEntry,
	&expandableEntry,
	&torchEntry,
	&nativeEntry,
}

// Entry is an allocator of the registry, found by its name.
type Entry struct {
	Name  string
	About string // one line: what it is, and its settings

	Bound          bool // it reserves what is in use and caches nothing: other allocators are compared with it
	Imaginary      bool // its addresses have no memory: it cannot run on a GPU
	Planned        bool // it follows a plan of all requests, Job.Placements
	OneAddress     bool // each byte of its memory has one address, so that a map of addresses can show it
	CrossesStreams bool // memory may pass from one stream to another
	InProcess      bool // programs may run on it: it is a [Resident]

	// configure parses the settings that follow "NAME:" and returns what creates such an allocator.
	configure func(settings string) (maker, error)
}

type maker func(dev cuda.Device, job *Job) (Allocator, error)

// Resident is an allocator that programs may run on: it works with CUDA graphs.
type Resident interface {
	Allocator
	// Capture starts or ends the capture of a CUDA graph. During a capture the allocator records and queries no events and releases nothing
	// to the device: these calls would become part of the graph or end its capture.
	Capture(on bool) error
	// EmptyPool releases the free memory of a private pool to the device, and reports whether the pool has none left.
	EmptyPool(pool Pool) (bool, error)
}

var _ = [...]Resident{(*Torch)(nil), (*Stitch)(nil), (*Cyclic)(nil), (*GMLake)(nil)}

// Job describes the program that an allocator will serve. The zero value stands for a program about which nothing is known.
type Job struct {
	Align      int64       // bytes that sizes are rounded up to; 0 is none
	AllocConf  string      // PYTORCH_CUDA_ALLOC_CONF of the run that was recorded
	Placements []Placement // where a plan puts each request
	Arenas     []int64     // sizes of the arenas of that plan, in bytes
	// Plan makes c adopt a plan for an iteration that the program repeats, at once or later. It is called within Malloc. If it is nil,
	// nothing is planned.
	Plan func(c *Cyclic, iteration []Request)
}

// align returns what sizes are rounded up to.
func (j *Job) align() int64 { return max(j.Align, 1) }

// Registry returns the allocators in the order in which tables show them.
func Registry() []*Entry { return registry[:] }

// Spec is an allocator with its settings.
type Spec struct {
	*Entry
	Text string // as written: NAME, or NAME:setting=value,setting=value
	make maker
}

// New creates the allocator on dev. A *OOMError means that dev has no room for the arenas of a plan.
func (s Spec) New(dev cuda.Device, job Job) (Allocator, error) { return s.make(dev, &job) }

// AllSpecs returns every allocator with its default settings.
func AllSpecs() []Spec {
	var specs []Spec
	for _, e := range registry {
		spec, err := e.spec("")
		if err != nil {
			panic("BUG: the defaults of allocator " + e.Name + ": " + err.Error())
		}
		specs = append(specs, spec)
	}
	return specs
}

// ParseSpec reads NAME, or NAME:setting=value,setting=value.
func ParseSpec(text string) (Spec, error) {
	specs, err := ParseSpecs(text)
	if err != nil {
		return Spec{}, err
	}
	if len(specs) > 1 {
		return Spec{}, fmt.Errorf("%d allocators, expected one", len(specs))
	}
	return specs[0], nil
}

// ParseSpecs reads a list such as "torch,gmlake:frag_limit=128MiB,stitch_limit=80GiB,native". A part with a "=", or with a ":" that does
// not follow the name of an allocator, is a setting of the allocator before it.
func ParseSpecs(text string) ([]Spec, error) {
	var entries []*Entry
	var settings []string // by entry
	for _, part := range allocconf.Split(text) {
		part = strings.TrimSpace(part)
		name, rest, hasRest := strings.Cut(part, ":")
		entry := lookup(name)
		last := len(entries) - 1
		switch setting := strings.Contains(name, "=") || hasRest && last >= 0 && entry == nil; {
		case setting && last < 0:
			return nil, fmt.Errorf("setting %q comes before any allocator", part)
		case setting && settings[last] == "":
			settings[last] = part
		case setting:
			settings[last] += "," + part
		case entry == nil:
			return nil, fmt.Errorf("unknown allocator %q, expected one of %s", name, names())
		default:
			entries, settings = append(entries, entry), append(settings, rest)
		}
	}
	specs := make([]Spec, len(entries))
	for i, e := range entries {
		var err error
		if specs[i], err = e.spec(settings[i]); err != nil {
			return nil, err
		}
	}
	return specs, nil
}

// spec returns the allocator with settings.
func (e *Entry) spec(settings string) (Spec, error) {
	s := Spec{Entry: e, Text: e.Name}
	if settings != "" {
		s.Text += ":" + settings
	}
	var err error
	if s.make, err = e.configure(settings); err != nil {
		return Spec{}, fmt.Errorf("allocator %s: %w", s.Text, err)
	}
	return s, nil
}

func lookup(name string) *Entry {
	i := slices.IndexFunc(registry[:], func(e *Entry) bool { return e.Name == name })
	if i < 0 {
		return nil
	}
	return registry[i]
}

func names() string {
	var all []string
	for _, e := range registry {
		all = append(all, e.Name)
	}
	return strings.Join(all, ", ")
}
