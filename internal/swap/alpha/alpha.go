// Package alpha solves MEMO's problem in closed form: which fraction of what a layer of a transformer saves can be copied to the host
// behind the computation of the next layer, and into host memory (SIGMOD 2025, section 4.1).
//
//	max alpha  with  (Input + Attention + alpha Others) / bandwidth <= Forward
//	                 (Layers - 2) (Input + Attention + alpha Others) <= host
//
// The input of a layer and the output of its attention always go to the host, the rest of the others is recomputed. The last two layers
// keep all, as their backward passes come at once.
package alpha

import (
	"fmt"
	"time"

	"gm/internal/swap"
)

// Model is a row of equal layers, as one GPU has them.
type Model struct {
	Layers                   int
	Input, Attention, Others int64 // bytes that a layer saves

	// Forward pass of a layer, in parts that grow with the tokens of a sequence and with their square.
	Linear, Quadratic time.Duration
}

// Forward returns the time of a layer's forward pass.
func (m *Model) Forward() time.Duration { return m.Linear + m.Quadratic }

// Constraint is what keeps alpha from being larger.
type Constraint int

// The constraints.
const (
	None      Constraint = iota // all that is saved goes to the host
	Bandwidth                   // of the link to the host
	HostMemory
)

func (c Constraint) String() string { return [...]string{"none", "bandwidth", "host memory"}[c] }

// Result is the solution.
type Result struct {
	Alpha       float64 // from 0 to 1
	Binds       Constraint
	ByBandwidth float64 // what the constraints would allow by themselves: above 1 with room to spare, below 0 when not even Input and
	ByHost      float64 // Attention can be copied
	Host        int64   // bytes of host memory that are taken
}

// InfeasibleError says that not even inputs and outputs of attention can be copied: the step waits for them, or they do not fit.
type InfeasibleError struct {
	Binds        Constraint
	Needs, Limit float64 // seconds, or bytes
}

// Error implements error.
func (e *InfeasibleError) Error() string {
	if e.Binds == Bandwidth {
		return fmt.Sprintf("the inputs and attention outputs of a layer take %.4g s to copy, its forward pass %.4g s", e.Needs, e.Limit)
	}
	return fmt.Sprintf("the inputs and attention outputs of all layers but two take %.4g bytes of host memory, of %.4g", e.Needs, e.Limit)
}

// Solve returns the largest alpha for one GPU's link, in bytes a second, and its host memory, in bytes. The error is an
// *InfeasibleError if there is none; what the constraints allow is then in the result all the same.
func Solve(m Model, bandwidth float64, host int64) (Result, error) {
	fixed, others, layers := float64(m.Input+m.Attention), float64(m.Others), float64(max(0, m.Layers-2))
	r := Result{
		ByBandwidth: (bandwidth*m.Forward().Seconds() - fixed) / others,
		ByHost:      (float64(host) - layers*fixed) / (layers * others),
	}
	if layers == 0 {
		r.ByHost = 1 // nothing is copied
	}
	switch {
	case r.ByBandwidth < 0:
		r.Binds = Bandwidth
		return r, &InfeasibleError{Bandwidth, fixed / bandwidth, m.Forward().Seconds()}
	case r.ByHost < 0:
		r.Binds = HostMemory
		return r, &InfeasibleError{HostMemory, layers * fixed, float64(host)}
	case r.ByBandwidth < min(1, r.ByHost):
		r.Binds, r.Alpha = Bandwidth, r.ByBandwidth
	case r.ByHost < 1:
		r.Binds, r.Alpha = HostMemory, r.ByHost
	default:
		r.Alpha = 1
	}
	r.Host = int64(layers * (fixed + r.Alpha*others))
	return r, nil
}

// Hides returns how many times as long as they are sequences have to be for all copies to hide behind the computation, as that grows with
// the square of the tokens: at 1 or less they do. It is false if they never do.
func (m *Model) Hides(bandwidth float64) (float64, bool) {
	rest := float64(m.Input+m.Attention+m.Others)/bandwidth - m.Linear.Seconds()
	switch {
	case rest <= 0:
		return 0, true
	case m.Quadratic == 0:
		return 0, false
	}
	return rest / m.Quadratic.Seconds(), true
}

// Of returns the model of a graph whose layers are equal, as those of a transformer are.
func Of(g *swap.Graph) (Model, error) {
	last := int32(-1)
	for i := range g.Tensors {
		last = max(last, g.Tensors[i].Layer)
	}
	if int(last) >= len(g.Tensors) {
		return Model{}, fmt.Errorf("graph %s has a layer %d, and %d tensors", g.Name, last, len(g.Tensors))
	}
	layers := last + 1
	each := make([]Model, layers)
	for i := range g.Tensors {
		if t := &g.Tensors[i]; t.Layer >= 0 {
			*each[t.Layer].bytes(t.Role) += t.Bytes
		}
	}
	for i := range g.Ops {
		if o := &g.Ops[i]; o.Layer >= 0 && o.Layer < layers && o.Phase == swap.Forward {
			*each[o.Layer].part(o.Type) += o.Duration
		}
	}
	if layers == 0 || each[0].Input == 0 || each[0].Others == 0 {
		return Model{}, fmt.Errorf("graph %s has no layers with a role for their input", g.Name)
	}
	for i := range each {
		if each[i].Input != each[0].Input || each[i].Attention != each[0].Attention || each[i].Others != each[0].Others {
			return Model{}, fmt.Errorf("graph %s: layer %d does not save what layer 0 does", g.Name, i)
		}
	}
	return average(each), nil
}

// bytes returns the sum that a tensor of a role belongs to.
func (m *Model) bytes(r swap.Role) *int64 {
	switch r {
	case swap.LayerInput:
		return &m.Input
	case swap.AttentionOut:
		return &m.Attention
	}
	return &m.Others
}

// part returns the time that an operator of a type belongs to.
func (m *Model) part(t swap.OpType) *time.Duration {
	if t == swap.Attention {
		return &m.Quadratic
	}
	return &m.Linear
}

// average takes times as they are in the mean: those of a recorded graph vary.
func average(each []Model) Model {
	m := each[0]
	m.Layers = len(each)
	for _, e := range each[1:] {
		m.Linear += e.Linear
		m.Quadratic += e.Quadratic
	}
	m.Linear /= time.Duration(len(each))
	m.Quadratic /= time.Duration(len(each))
	return m
}
