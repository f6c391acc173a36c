package main

import (
	"encoding/csv"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
)

// compiledResults is what experiments/order/inductor.py measured on an H200: a row for each graph that torch.compile made.
const compiledResults = "experiments/order/results/inductor-h200.csv"

const (
	compileSlower   = 1.10 // of the time that compiling takes without gm
	compiledOthers  = 1.0  // of Inductor's own peak of a whole step
	compiledModels  = 10
	compiledMinimum = 0.01 // of a peak that an order has to save to be taken
)

// inductorGains are what Inductor's authors published for their orders over none (pytorch#134874): the peak of a step without over that with.
var inductorGains = map[string]float64{"alexnet": 1.19, "vgg16": 1.15, "deberta": 1.10, "mobilebert": 1.20}

// compiledGraph is a row.
type compiledGraph struct {
	model, pass, equal         string
	baseline, plain, gm        float64 // bytes of the graph's peak, by Inductor's model
	none, ownStep, gmStep      float64 // bytes of the whole step's, as allocated
	compilePlain, compileOrder float64 // seconds
}

// measureCompiled compares gm's orders of what torch.compile made with Inductor's, from the runs that are kept.
func measureCompiled(e *experiment) error {
	graphs, err := readCompiled(compiledResults)
	if err != nil {
		return err
	}
	models := 0
	for _, g := range graphs {
		if g.pass == "forward" {
			models++
			continue
		}
		e.compiled(&g)
	}
	for _, model := range slices.Sorted(maps.Keys(inductorGains)) {
		if !slices.ContainsFunc(graphs, func(g compiledGraph) bool { return g.model == model }) {
			e.table.Add("compiled: "+model, "not run", "", "not measured")
		}
	}
	e.add("compiled: models", fmt.Sprint(models), fmt.Sprint(compiledModels), models >= compiledModels)
	return measureSaved(e)
}

// compiled adds the rows of a model, whose backward pass has its peak.
func (e *experiment) compiled(g *compiledGraph) {
	best := g.plain
	if g.gm < g.plain*(1-compiledMinimum) {
		best = g.gm
	}
	gain, published := g.baseline/best, inductorGains[g.model]
	want := "-"
	if published > 0 {
		want = fmt.Sprintf("%.2f", published)
	}
	e.add("compiled: "+g.model+", peak by the model", fmt.Sprintf("%.3f of nothing reordered; Inductor's own %.3f", gain, g.baseline/g.plain), want, gain >= published)
	taken := "taken"
	if best == g.plain {
		taken = "not taken: below 1 % by the model"
	}
	e.add("compiled: "+g.model+", whole step", fmt.Sprintf("%.4f of Inductor's, %.4f of nothing reordered; %s", g.gmStep/g.ownStep, g.gmStep/g.none, taken),
		fmt.Sprintf("%.1f", compiledOthers), best == g.plain || g.gmStep <= g.ownStep*compiledOthers)
	slower := g.compileOrder / g.compilePlain
	e.add("compiled: "+g.model+", results, compiling", fmt.Sprintf("equal: %s, %.2f of the time", g.equal, slower), fmt.Sprintf("yes, %.2f", compileSlower),
		g.equal == "yes" && slower <= compileSlower)
}

// readCompiled returns the rows of a table.
func readCompiled(path string) ([]compiledGraph, error) {
	rows, err := readNamed(path)
	if err != nil {
		return nil, err
	}
	graphs := make([]compiledGraph, len(rows))
	for i, row := range rows {
		g := &graphs[i]
		g.model, g.pass, g.equal = row["model"], row["pass"], row["equal"]
		err := numbers(row, map[string]*float64{
			"baseline": &g.baseline, "plain": &g.plain, "gm": &g.gm, "step_none": &g.none, "step_plain": &g.ownStep, "step_gm": &g.gmStep,
			"compile_plain_s": &g.compilePlain, "compile_gm_s": &g.compileOrder,
		})
		if err != nil {
			return nil, fmt.Errorf("read %s: row %d: %w", path, i+1, err)
		}
	}
	return graphs, nil
}

// readNamed returns the rows of a table by the names of its columns.
func readNamed(path string) ([]map[string]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	var named []map[string]string
	for _, row := range rows[1:] {
		fields := map[string]string{}
		for c, name := range rows[0] {
			fields[name] = row[c]
		}
		named = append(named, fields)
	}
	return named, nil
}

// numbers reads fields of a row. A field that is empty stays 0.
func numbers(row map[string]string, fields map[string]*float64) (err error) {
	for name, to := range fields {
		if row[name] == "" {
			continue
		}
		if *to, err = strconv.ParseFloat(row[name], 64); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}
