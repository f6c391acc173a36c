package trace

import "strings"

// Derived is what an allocation is for, where gm says it and not the program.
type Derived struct {
	Tag       string
	Certainty string // Inferred or Guess
	Rule      string // that named the tag
}

// How certain a derived tag is.
const (
	Inferred = "inferred" // from the code that made the allocation, or from passes of training that stacks or marks name
	Guess    = "guess"    // from the order, the sizes and the lifetimes of allocations alone
)

// The texts between the parts of a Derived in a file.
const (
	derivedCertainty = " ("
	derivedRule      = "): "
)

// String returns the text of the column derived, "TAG (CERTAINTY): RULE"; "" if there is no tag.
func (d Derived) String() string {
	if d.Tag == "" {
		return ""
	}
	return d.Tag + derivedCertainty + d.Certainty + derivedRule + d.Rule
}

// ParseDerived splits a text that String made, and reports whether it is one.
func ParseDerived(text string) (d Derived, ok bool) {
	head, rule, ok := strings.Cut(text, derivedRule)
	at := strings.LastIndex(head, derivedCertainty)
	if !ok || at <= 0 {
		return Derived{}, false
	}
	return Derived{head[:at], head[at+len(derivedCertainty):], rule}, true
}
