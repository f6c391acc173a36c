package graphs

import (
	"fmt"
	"slices"
	"strings"

	"gm/internal/cuda/cards"
	"gm/internal/models/shapes"
)

// Entry is a network by name.
type Entry struct {
	Name       string
	About      string // one line
	Device     string // unless the spec names one
	Parameters []shapes.Parameter
	build      func(v values) (*Model, error)
}

// values are the parameters of an entry.
type values struct {
	device cards.Device
	of     map[string]int64
}

// Entries lists the networks.
func Entries() []Entry { return append(layered(), transformers()...) }

// Build makes the network that a spec names: a name and parameters, such as gpt-7b,seq=64Ki,tp=4 or resnet-50,batch=100,device=titan-x.
// Numbers may end in K, M or G, with or without an i: powers of 1024.
func Build(spec string) (*Model, error) {
	m, err := build(spec)
	if err != nil {
		return nil, fmt.Errorf("network %q: %w", spec, err)
	}
	return m, nil
}

func build(spec string) (*Model, error) {
	fields := strings.Split(spec, ",")
	entry, err := lookup(fields[0])
	if err != nil {
		return nil, err
	}
	v := values{of: map[string]int64{}}
	device := entry.Device
	given, err := shapes.EachGiven(fields[1:], func(name, value string) (err error) {
		if name == "device" {
			device = value
			return nil
		}
		v.of[name], err = entry.parse(name, value)
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, p := range entry.Parameters {
		if !slices.Contains(given, p.Name) {
			v.of[p.Name] = p.Default
		}
	}
	if v.device, err = cards.LookupDevice(device); err != nil {
		return nil, err
	}
	m, err := entry.build(v)
	if err != nil {
		return nil, err
	}
	m.Graph.Name, m.Graph.Device = spec, v.device.Name
	return m, m.Graph.Validate()
}

func lookup(name string) (*Entry, error) {
	var names []string
	for _, e := range Entries() {
		if e.Name == name {
			return &e, nil
		}
		names = append(names, e.Name)
	}
	return nil, fmt.Errorf("unknown, expected one of %s", strings.Join(names, ", "))
}

// parse reads the value of one of the entry's parameters.
func (e *Entry) parse(name, text string) (int64, error) {
	names := []string{"device"}
	for _, p := range e.Parameters {
		if p.Name == name {
			return p.Parse(text)
		}
		names = append(names, p.Name)
	}
	return 0, fmt.Errorf("unknown parameter %q, expected one of %s", name, strings.Join(names, ", "))
}
