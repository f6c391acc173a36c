package main

// comparison is the results of policies, as JSON.
type comparison struct {
	Graph     string           `json:"graph"`
	Device    string           `json:"device"`
	PlainNS   int64            `json:"plain_ns"` // of a step with nothing moved
	PlainPeak int64            `json:"plain_peak_bytes"`
	Bounds    []comparedBound  `json:"bounds"`
	Results   []comparedPolicy `json:"results"`
}

type comparedBound struct {
	Memory int64  `json:"memory_bytes"`
	StepNS *int64 `json:"lower_bound_ns"` // null where no schedule is possible
}

type comparedPolicy struct {
	Policy   string `json:"policy"`
	Memory   int64  `json:"memory_bytes"`
	Feasible bool   `json:"feasible"`
	Missing  int64  `json:"missing_bytes,omitempty"` // of the schedule that comes closest

	StepNS   int64 `json:"step_ns,omitempty"`
	Peak     int64 `json:"peak_bytes,omitempty"`
	Host     int64 `json:"host_bytes,omitempty"`
	Out      int64 `json:"out_bytes,omitempty"`
	In       int64 `json:"in_bytes,omitempty"`
	RemadeNS int64 `json:"recomputed_ns,omitempty"`
	WaitNS   int64 `json:"wait_ns,omitempty"`
}

func (s *sweep) account() *comparison {
	c := &comparison{Graph: s.graph.Name, Device: s.graph.Device, PlainNS: int64(s.plain.Step), PlainPeak: s.plain.Peak}
	for b, x := range s.bounds {
		row := comparedBound{Memory: s.budgets[b]}
		if step := int64(x.step); x.any {
			row.StepNS = &step
		}
		c.Bounds = append(c.Bounds, row)
	}
	for p := range s.policies {
		for b := range s.budgets {
			c.Results = append(c.Results, s.outcomes[p][b].row(s.policies[p].Name, s.budgets[b]))
		}
	}
	return c
}

func (o *outcome) row(name string, memory int64) comparedPolicy {
	row := comparedPolicy{Policy: name, Memory: memory, Feasible: o.Result != nil}
	if o.short != nil {
		row.Missing = o.short.Bytes
	}
	if r := o.Result; r != nil {
		row.StepNS, row.Peak, row.Host, row.Out, row.In = int64(r.Step), r.Peak, r.Host, r.Out, r.In
		row.RemadeNS, row.WaitNS = int64(r.Recomputed), int64(r.Stalled())
	}
	return row
}
