package main

import (
	"fmt"
	"io"
	"strings"

	"gm/internal/cli"
	"gm/internal/cuda/cards"
	"gm/internal/models/shapes"
	"gm/internal/models/synth"
)

// synthList lists the models, their parameters and the devices.
type synthList struct {
	Models     []synthModel     `json:"models"`
	Parameters []synthParameter `json:"parameters"`
	Devices    []synthDevice    `json:"devices"`
}

type synthModel struct {
	Name       string `json:"name"`
	About      string `json:"about"`
	Layers     int64  `json:"layers"`
	Hidden     int64  `json:"hidden"`
	FFN        int64  `json:"ffn"`
	Heads      int64  `json:"heads"`
	Vocabulary int64  `json:"vocab"`
	Parameters int64  `json:"parameters"`
}

type synthParameter struct {
	Name  string `json:"name"`
	About string `json:"about"`
	Least int64  `json:"least"`
	Most  int64  `json:"most"`
}

type synthDevice struct {
	Name  string `json:"name"`
	About string `json:"about"`
}

func (cmd *synthCmd) list(w io.Writer) error {
	l := &synthList{}
	for _, m := range shapes.Transformers() {
		l.Models = append(l.Models, synthModel{m.Name, m.About, m.Layers, m.Hidden, m.FFN, m.Heads, m.Vocabulary, m.Parameters()})
	}
	for _, p := range synth.Parameters() {
		l.Parameters = append(l.Parameters, synthParameter{p.Name, p.About, p.Least, p.Most})
	}
	for _, d := range cards.Devices() {
		l.Devices = append(l.Devices, synthDevice{d.Name, d.About})
	}
	if !cmd.JSON {
		return l.print(w)
	}
	return cli.WriteJSON(w, l)
}

func (l *synthList) print(w io.Writer) error {
	var text strings.Builder
	text.WriteString("Models, with their layers, hidden, ffn, heads, vocab, and parameters in 10^9:\n\n")
	for _, m := range l.Models {
		fmt.Fprintf(&text, "  %-13s %2d %5d %6d %3d %7d %6.2f  %s\n",
			m.Name, m.Layers, m.Hidden, m.FFN, m.Heads, m.Vocabulary, float64(m.Parameters)/1e9, m.About)
	}
	text.WriteString("\nParameters, as KEY=VALUE; numbers may end in K, M or G, powers of 1024:\n\n")
	fmt.Fprintf(&text, "  %-8s %s\n", "seq", "tokens of a sequence: N; A..B, drawn for each step; or A/B/C, in turn. Under V a lone N is N/4..N; 1Ki by default")
	for _, p := range l.Parameters {
		fmt.Fprintf(&text, "  %-8s %s\n", p.Name, p.About)
	}
	fmt.Fprintf(&text, "  %-8s %s\n\nDevices, for the times:\n\n", "device", "h200 by default")
	for _, d := range l.Devices {
		fmt.Fprintf(&text, "  %-8s %s\n", d.Name, d.About)
	}
	_, err := io.WriteString(w, text.String())
	return err
}
