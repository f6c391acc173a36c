package network

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gm/internal/cuda/cards"
)

// Entry is a network by name.
type Entry struct {
	Name       string
	About      string // one line
	Device     string // unless the spec names one
	Parameters []Parameter
	build      func(v values) (*Model, error)
}

// Parameter is a number that a network is made with.
type Parameter struct {
	Name, About          string
	Default, Least, Most int64
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
	var given []string
	for _, field := range fields[1:] {
		name, value, found := strings.Cut(field, "=")
		switch {
		case !found:
			return nil, fmt.Errorf("%q is not of the form name=value", field)
		case slices.Contains(given, name):
			return nil, fmt.Errorf("%s is given twice", name)
		case name == "device":
			device = value
		default:
			if v.of[name], err = entry.parse(name, value); err != nil {
				return nil, err
			}
		}
		given = append(given, name)
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
			n, err := ParseNumber(text)
			if err == nil && (n < p.Least || n > p.Most) {
				err = fmt.Errorf("%s is not within %d and %d", text, p.Least, p.Most)
			}
			if err != nil {
				return 0, fmt.Errorf("%s: %w", name, err)
			}
			return n, nil
		}
		names = append(names, p.Name)
	}
	return 0, fmt.Errorf("unknown parameter %q, expected one of %s", name, strings.Join(names, ", "))
}

// ParseNumber reads a number as specs have them, such as 128 or 64Ki.
func ParseNumber(text string) (int64, error) {
	digits := strings.TrimRight(text, "KMGkmgi")
	shift, known := map[string]int{"": 0, "k": 10, "ki": 10, "m": 20, "mi": 20, "g": 30, "gi": 30}[strings.ToLower(text[len(digits):])]
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || !known || n < 0 || n > 1<<62>>shift {
		return 0, fmt.Errorf("%q is not a number such as 128 or 64Ki", text)
	}
	return n << shift, nil
}
