package shapes

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Parameter is a number that a spec may give, from Least to Most.
type Parameter struct {
	Name, About          string
	Default, Least, Most int64
}

// Parse reads the value of the parameter.
func (p *Parameter) Parse(text string) (int64, error) {
	n, err := ParseWithin(text, p.Least, p.Most)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", p.Name, err)
	}
	return n, nil
}

// EachGiven calls set for each name=value of the fields of a spec, and returns the names.
func EachGiven(fields []string, set func(name, value string) error) (given []string, err error) {
	for _, field := range fields {
		name, value, found := strings.Cut(field, "=")
		switch {
		case !found:
			return nil, fmt.Errorf("%q is not of the form name=value", field)
		case slices.Contains(given, name):
			return nil, fmt.Errorf("%s is given twice", name)
		}
		given = append(given, name)
		if err := set(name, value); err != nil {
			return nil, err
		}
	}
	return given, nil
}

// ParseWithin reads a number from least to most.
func ParseWithin(text string, least, most int64) (int64, error) {
	n, err := ParseNumber(text)
	if err == nil && (n < least || n > most) {
		err = fmt.Errorf("%s is not within %d and %d", text, least, most)
	}
	return n, err
}

// ParseNumber reads a number such as 128 or 64Ki: K, M and G, with or without an i, are powers of 1024.
func ParseNumber(text string) (int64, error) {
	digits := strings.TrimRight(text, "KMGkmgi")
	shift, known := map[string]int{"": 0, "k": 10, "ki": 10, "m": 20, "mi": 20, "g": 30, "gi": 30}[strings.ToLower(text[len(digits):])]
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || !known || n < 0 || n > 1<<62>>shift {
		return 0, fmt.Errorf("%q is not a number such as 128 or 64Ki", text)
	}
	return n << shift, nil
}
