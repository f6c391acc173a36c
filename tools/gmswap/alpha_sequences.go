package main

import (
	"fmt"
	"sort"
	"strings"

	"gm/internal/models/graphs"
	"gm/internal/models/shapes"
)

// sequences is the spec of a network with several lengths of its sequences.
type sequences struct {
	text   string // as it was given
	before string // the spec up to the length
	after  string // and behind it
	tokens []int64
}

// at returns the spec for one length.
func (s *sequences) at(tokens int64) string { return s.before + fmt.Sprint(tokens) + s.after }

// parseSequences reads a spec in which seq may be a list, seq=64Ki,96Ki, or a range, seq=64Ki..1Mi.
func parseSequences(spec string) (*sequences, error) {
	s := &sequences{text: spec}
	fields := strings.Split(spec, ",")
	first, end := len(fields), len(fields)
	for i, field := range fields {
		if strings.HasPrefix(field, "seq=") {
			first, end = i, i+1
			for end < len(fields) && !strings.Contains(fields[end], "=") {
				end++
			}
			break
		}
	}
	s.before = strings.Join(append(fields[:first:first], "seq="), ",")
	s.after = strings.Join(append([]string{""}, fields[end:]...), ",")
	if first == len(fields) {
		tokens, err := defaultTokens(fields[0])
		s.tokens = []int64{tokens}
		return s, err
	}
	for i, text := range fields[first:end] {
		if i == 0 {
			text = strings.TrimPrefix(text, "seq=")
		}
		if err := s.add(text); err != nil {
			return nil, fmt.Errorf("seq: %w", err)
		}
	}
	return s, nil
}

// defaultTokens returns the length of a network's sequences where none is given. The closed form is of networks that have any.
func defaultTokens(name string) (int64, error) {
	for _, e := range graphs.Entries() {
		for _, p := range e.Parameters {
			if e.Name == name && p.Name == "seq" {
				return p.Default, nil
			}
		}
	}
	if _, err := graphs.Build(name); err != nil {
		return 0, err
	}
	return 0, fmt.Errorf("network %s has no layers of sequences", name)
}

// add adds a length, or those of a range: each twice the one before it, and the last.
func (s *sequences) add(text string) error {
	low, high, isRange := strings.Cut(text, "..")
	tokens, err := shapes.ParseNumber(low)
	if err != nil {
		return err
	}
	last := tokens
	if isRange {
		if last, err = shapes.ParseNumber(high); err != nil {
			return err
		}
	}
	if tokens < 1 || last < tokens {
		return fmt.Errorf("%q: lengths are 1 or more, and a range begins with its shortest", text)
	}
	for ; tokens < last; tokens *= 2 {
		s.tokens = append(s.tokens, tokens)
	}
	s.tokens = append(s.tokens, last)
	return nil
}

// mostTokens is the longest sequence that is looked at: the longest that networks have.
const mostTokens = 1 << 24

// search returns the shortest sequence, in steps of 1024 tokens or of what the GPUs can share, for which everything is copied while the layers
// run; 0 if there is none.
func (t *alphas) search(s *sequences) int64 {
	unit := multiple(1024, t.GPUs)
	n := sort.Search(mostTokens/int(unit), func(i int) bool {
		_, m, err := layersOf(s.at(unit * int64(i+1)))
		return err == nil && float64(m.Input+m.Attention+m.Others) <= t.rate()*m.Forward().Seconds()
	})
	if n == mostTokens/int(unit) {
		return 0
	}
	return unit * int64(n+1)
}

// multiple returns the least common multiple.
func multiple(a, b int64) int64 {
	x, y := a, b
	for y != 0 {
		x, y = y, x%y
	}
	return a / x * b
}
