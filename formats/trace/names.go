package trace

import (
	"fmt"
	"slices"
)

// opNames are the names of the operations in files, by value.
var opNames = []string{
	OpAlloc:         "alloc",
	OpFree:          "free",
	OpFreeRequested: "free_requested",
	OpFreeCompleted: "free_completed",
	OpSegmentAlloc:  "segment_alloc",
	OpSegmentFree:   "segment_free",
	OpSegmentMap:    "segment_map",
	OpSegmentUnmap:  "segment_unmap",
	OpOOM:           "oom",
	OpSnapshot:      "snapshot",
	OpMark:          "mark",
	OpSample:        "sample",
}

// levelNames are the names of the levels in files, by value.
var levelNames = []string{
	LevelFramework: "framework",
	LevelDriver:    "driver",
}

// String returns the operation's name in files.
func (o Op) String() string { return nameOf("Op", opNames, int(o)) }

// ParseOp returns the operation of a name.
func ParseOp(name string) (Op, error) {
	i := slices.Index(opNames, name)
	if i < 0 {
		return 0, fmt.Errorf("unknown op %q", name)
	}
	return Op(i), nil
}

// Segment reports whether the row is about memory that an allocator reserves, rather than about what it allocates from it.
func (o Op) Segment() bool { return o >= OpSegmentAlloc && o <= OpSegmentUnmap }

// String returns the level's name in files.
func (l Level) String() string { return nameOf("Level", levelNames, int(l)) }

func nameOf(typ string, names []string, i int) string {
	if i < 0 || i >= len(names) {
		return fmt.Sprintf("%s(%d)", typ, i)
	}
	return names[i]
}
