package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"gm/internal/cuda/cards"
	"gm/internal/models/graphs"
)

// listing is what networks there are.
type listing struct {
	Networks []listedNetwork `json:"networks"`
	Devices  []listedDevice  `json:"devices"`
}

type listedNetwork struct {
	Name       string            `json:"name"`
	About      string            `json:"about"`
	Device     string            `json:"device"` // by default
	Parameters []listedParameter `json:"parameters"`
}

type listedParameter struct {
	Name    string `json:"name"`
	About   string `json:"about"`
	Default int64  `json:"default"`
	Least   int64  `json:"least"`
	Most    int64  `json:"most"`
}

type listedDevice struct {
	Name  string `json:"name"`
	About string `json:"about"`
}

func list() *listing {
	l := &listing{}
	for _, e := range graphs.Entries() {
		n := listedNetwork{Name: e.Name, About: e.About, Device: e.Device}
		for _, p := range e.Parameters {
			n.Parameters = append(n.Parameters, listedParameter(p))
		}
		l.Networks = append(l.Networks, n)
	}
	for _, d := range cards.Devices() {
		l.Devices = append(l.Devices, listedDevice{d.Name, d.About})
	}
	return l
}

// print prints the list for people.
func (l *listing) print(w io.Writer) error {
	var text strings.Builder
	text.WriteString("Networks, with what their parameters are by default:\n\n")
	about := map[string][]string{}
	var names []string
	for _, n := range l.Networks {
		fmt.Fprintf(&text, "  %s\n      %s\n", n.spec(), n.About)
		for _, p := range n.Parameters {
			if about[p.Name] == nil {
				names = append(names, p.Name)
			}
			if !slices.Contains(about[p.Name], p.About) {
				about[p.Name] = append(about[p.Name], p.About)
			}
		}
	}
	text.WriteString("\nParameters:\n\n")
	for _, name := range names {
		fmt.Fprintf(&text, "  %-10s %s\n", name, strings.Join(about[name], "; "))
	}
	text.WriteString("\nDevices:\n\n")
	for _, d := range l.Devices {
		fmt.Fprintf(&text, "  %-10s %s\n", d.Name, d.About)
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// spec returns the network with all that is its default.
func (n *listedNetwork) spec() string {
	words := []string{n.Name}
	for _, p := range n.Parameters {
		words = append(words, p.Name+"="+count(p.Default))
	}
	return strings.Join(append(words, "device="+n.Device), ",")
}

// count returns a number as it may be typed: 64Ki for 65536.
func count(n int64) string {
	for _, unit := range []string{"", "Ki", "Mi"} {
		if n == 0 || n%1024 != 0 {
			return strconv.FormatInt(n, 10) + unit
		}
		n /= 1024
	}
	return strconv.FormatInt(n, 10) + "Gi"
}
