package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"gm/internal/cli"
	"gm/internal/models/graphs"
	"gm/internal/swap"
	"gm/internal/swap/alpha"
	"gm/internal/swap/link"
	"gm/internal/units"
)

type alphaCmd struct {
	Graph     string      `arg:"" optional:"" name:"graph" help:"A graph of equal layers. Standard input by default, or for '-', unless --net is given."`
	Net       string      `placeholder:"SPEC" help:"A network of gmswap net instead of a graph. Its seq may be a list, seq=64Ki,96Ki,128Ki, or a range of doubles, seq=64Ki..1Mi."`
	Host      units.Bytes `placeholder:"SIZE" help:"Host memory for each GPU. No limit by default."`
	Link      string      `xor:"link" placeholder:"FILE" help:"How fast copies are, as gmswap bandwidth measured it. Those of an H200 by default."`
	Bandwidth units.Bytes `xor:"link" placeholder:"SIZE" help:"Bytes a second from each GPU to the host, such as 24GB, instead of --link."`
	JSON      bool        `name:"json" help:"Print JSON."`
}

// Help implements kong.HelpProvider.
func (cmd *alphaCmd) Help() string {
	return "Example: gmswap alpha --net gpt-7b,seq=64Ki..1Mi,tp=4,cp=2 --bandwidth 12GB --host 120GiB\n\n" +
		"MEMO's closed form: inputs and attention outputs of all layers but the last two are copied to the host, and of all else that they save the " +
		"part alpha, as much as can be copied while the next layer runs and as there is host memory for; the rest is recomputed."
}

// Run implements the command.
func (cmd *alphaCmd) Run(c *cli.Context) error {
	if cmd.Net != "" && cmd.Graph != "" {
		return cli.Usage("a graph and --net are both given: leave one out")
	}
	if err := cli.CheckFiles([]string{cmd.Graph, cmd.Link}, nil); err != nil {
		return err
	}
	figures, err := readLink(cmd.Link)
	if err != nil {
		return err
	}
	t := alphas{Host: int64(cmd.Host), figures: figures, bandwidth: float64(cmd.Bandwidth)}
	if cmd.Net != "" {
		err = t.addNetwork(cmd.Net)
	} else {
		err = t.addGraph(cmd.Graph)
	}
	if err != nil {
		return err
	}
	if cmd.JSON {
		err = cli.WriteJSON(c.Out, &t)
	} else {
		err = t.print(c.Out)
	}
	return errors.Join(err, t.impossible())
}

// alphas is a network or a graph, and what the closed form says of it.
type alphas struct {
	Name      string     `json:"name"`
	GPUs      int64      `json:"gpus"`
	Layers    int        `json:"layers"`
	Bandwidth float64    `json:"bytes_per_s"`
	Host      int64      `json:"host_bytes"` // of each GPU; 0 for no limit
	Rows      []alphaRow `json:"rows"`
	Hides     int64      `json:"hides_from_tokens"` // the shortest sequence for which all copies hide; 0 when that is not known

	figures   *link.Link
	bandwidth float64 // 0: that of the figures
}

// alphaRow is the solution for one sequence length.
type alphaRow struct {
	Tokens      int64   `json:"seq,omitempty"`
	ForwardNS   int64   `json:"layer_forward_ns"`
	Saved       int64   `json:"layer_saved_bytes"`
	Feasible    bool    `json:"feasible"`
	Alpha       float64 `json:"alpha"`
	Binds       string  `json:"binds"`
	ByBandwidth float64 `json:"alpha_by_bandwidth"`
	ByHost      float64 `json:"alpha_by_host"`
	Swapped     int64   `json:"swapped_bytes"`
	Recomputed  int64   `json:"recomputed_bytes"`

	err error
}

// addGraph solves for a graph that was recorded or made.
func (t *alphas) addGraph(name string) error {
	g, err := readGraph(name)
	if err != nil {
		return err
	}
	m, err := alpha.Of(g.Graph)
	if err != nil {
		return fmt.Errorf("%s: %w", g.File, err)
	}
	t.Name, t.GPUs, t.Layers = g.Name, max(1, g.Meta.WorldSize), m.Layers
	t.add(&m, 0)
	return nil
}

// addNetwork solves for a network with each of its sequence lengths, and finds the one from which all copies hide.
func (t *alphas) addNetwork(spec string) error {
	s, err := parseSequences(spec)
	if err != nil {
		return cli.Usage("--net: %v", err)
	}
	t.Name = s.text
	for _, tokens := range s.tokens {
		n, m, err := layersOf(s.at(tokens))
		if err != nil {
			return cli.Usage("--net: %v", err)
		}
		t.GPUs, t.Layers = n.GPUs, m.Layers
		t.add(&m, tokens)
	}
	t.Hides = t.search(s)
	return nil
}

// layersOf returns a network and the model of its layers.
func layersOf(spec string) (*graphs.Model, alpha.Model, error) {
	n, err := graphs.Build(spec)
	if err != nil {
		return nil, alpha.Model{}, err
	}
	m, err := alpha.Of(n.Graph)
	return n, m, err
}

// add solves for a row of layers.
func (t *alphas) add(m *alpha.Model, tokens int64) {
	t.Bandwidth = t.rate()
	host := t.Host
	if host == 0 {
		host = int64(unlimited)
	}
	r, err := alpha.Solve(*m, t.Bandwidth, host)
	row := alphaRow{
		Tokens: tokens, ForwardNS: int64(m.Forward()), Saved: m.Input + m.Attention + m.Others, Feasible: err == nil,
		Alpha: r.Alpha, Binds: r.Binds.String(), ByBandwidth: r.ByBandwidth, ByHost: r.ByHost, err: err,
	}
	if err == nil {
		row.Swapped = r.Host
		row.Recomputed = int64(max(0, m.Layers-2))*row.Saved - r.Host
	}
	t.Rows = append(t.Rows, row)
}

// sample is the size of a copy whose rate is taken for that of all.
const sample = 1 << 30

// rate returns the bytes a second from and to a GPU, with as many at work as there are.
func (t *alphas) rate() float64 {
	if t.bandwidth > 0 {
		return t.bandwidth
	}
	loaded := swap.Copier(t.figures.Under(link.Load{GPUs: int(t.GPUs)}))
	return sample / max(loaded.OutTime(sample), loaded.InTime(sample)).Seconds()
}

// impossible returns an error if there is no alpha at all.
func (t *alphas) impossible() error {
	for i := range t.Rows {
		if t.Rows[i].Feasible {
			return nil
		}
	}
	err := t.Rows[len(t.Rows)-1].err
	none, ok := errors.AsType[*alpha.InfeasibleError](err)
	switch {
	case !ok:
		return err
	case none.Binds == alpha.Bandwidth:
		seconds := func(s float64) string { return timeText(time.Duration(s * float64(time.Second))) }
		return fmt.Errorf("%s: no alpha: the input and the attention output of a layer take %s to copy, and its forward pass %s",
			t.Name, seconds(none.Needs), seconds(none.Limit))
	}
	return fmt.Errorf("%s: no alpha: the inputs and attention outputs of all layers but two take %s of host memory, of %s",
		t.Name, units.Bytes(none.Needs), units.Bytes(none.Limit))
}

// text returns a part for people.
func text(part float64) string { return strconv.FormatFloat(math.Round(part*1000)/1000, 'g', 4, 64) }
