package instance

import (
	"fmt"
	"slices"
	"strings"
)

// kind is a column that is interpreted.
type kind int

const (
	id kind = iota
	lower
	upper
	end
	size
	alignment
	offset
	gaps
	sameAs
	nextTo
	arena
	kinds
)

// names lists the names of each kind.
var names = [kinds][]string{
	id: {"id", "buffer", "buffer_id"}, lower: {"lower", "begin", "start"}, upper: {"upper"}, end: {"end"}, size: {"size"},
	alignment: {"alignment"}, offset: {"offset"}, gaps: {"gaps"},
	sameAs: {"same_as"}, nextTo: {"next_to"}, arena: {"arena"},
}

// String returns the name that minimalloc writes.
func (k kind) String() string { return names[k][0] }

// columns holds the place of each kind in a line.
type columns struct {
	place [kinds]int // -1 when there is none
	width int        // fields of a line
}

// newColumns reads the header.
func newColumns(header string) (columns, error) {
	if len(header) > maxLine {
		return columns{}, errLong
	}
	titles := fields(nil, header)
	for i := range titles {
		titles[i] = strings.ToLower(strings.TrimSpace(titles[i]))
	}
	c := columns{width: len(titles)}
	for k := range kinds {
		c.place[k] = -1
		for i, title := range titles {
			if !slices.Contains(names[k], title) {
				continue
			}
			if c.place[k] >= 0 {
				return c, fmt.Errorf("two columns are the %s", k)
			}
			c.place[k] = i
		}
	}
	for _, k := range []kind{id, lower, size} {
		if !c.has(k) {
			return c, fmt.Errorf("no column named %s", strings.Join(names[k], " or "))
		}
	}
	if c.has(upper) == c.has(end) {
		return c, fmt.Errorf("expected one of the columns upper and end")
	}
	return c, nil
}

// has reports whether there is such a column.
func (c *columns) has(k kind) bool { return c.place[k] >= 0 }
