package blocks

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"gm/internal/units"
)

// settings are the settings of an allocator by name, and where their values go: *units.Bytes for a size, *int64 or *float64.
type settings map[string]any

// read reads name=value,name=value.
func (known settings) read(text string) error {
	if text == "" {
		return nil
	}
	for _, setting := range strings.Split(text, ",") {
		name, value, _ := strings.Cut(setting, "=")
		name = strings.TrimSpace(name)
		var err error
		switch p := known[name].(type) {
		case *units.Bytes:
			*p, err = units.ParseBytes(value)
		case *int64:
			if *p, err = strconv.ParseInt(value, 10, 32); err == nil && *p < 0 {
				err = fmt.Errorf("%q is below 0", value)
			}
		case *float64:
			if *p, err = strconv.ParseFloat(value, 64); err == nil && !(*p >= 0 && *p <= math.MaxInt32) {
				err = fmt.Errorf("%q is not a number of 0 or more", value)
			}
		default:
			return known.unknown(name)
		}
		if err != nil {
			return fmt.Errorf("setting %s: %w", name, err)
		}
	}
	return nil
}

func (known settings) unknown(name string) error {
	if len(known) == 0 {
		return fmt.Errorf("unknown setting %q: the allocator has no settings", name)
	}
	return fmt.Errorf("unknown setting %q, expected one of %s", name, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
}

// withoutSettings is the configure of an allocator that has no settings.
func withoutSettings(make maker) func(string) (maker, error) {
	return func(text string) (maker, error) { return make, settings(nil).read(text) }
}
