package importer

import (
	"fmt"
	"strings"

	"gm/formats/trace"
)

// stallocAlignment is the multiple to which PyTorch's allocator, which STAlloc traces, rounds sizes, in bytes.
const stallocAlignment = 512

// isSTAlloc reports whether a line is about an allocation or a free: "1 0x7f1e41329c00 512 0".
func isSTAlloc(line string) bool {
	f := strings.Fields(line)
	if len(f) != 4 || f[0] != "0" && f[0] != "1" {
		return false
	}
	for _, number := range f[1:] {
		if _, err := parseUint(number); err != nil {
			return false
		}
	}
	return true
}

// isSTAllocMark reports whether a line is one of the other lines of a trace.
func isSTAllocMark(line string) bool {
	return strings.Contains(line, "Iteration Index") || strings.Contains(line, "micro-batch") ||
		strings.Contains(line, "Layer") && strings.Contains(line, "->")
}

func (t *text) stalloc() error {
	t.out.out.Meta().Alignment = stallocAlignment
	blocks := newBlocks(t.out)
	for now := int64(0); ; now++ {
		line, err := t.lines.next()
		if err != nil {
			return done(err)
		}
		if line[0] != '0' && line[0] != '1' {
			mark := trace.Event{TimeNS: now, Op: trace.OpMark, Tag: t.out.text(string(line))}
			if err := t.out.write(mark); err != nil {
				return t.at(err)
			}
			continue
		}
		if err := t.stallocEvent(blocks, string(line), now); err != nil {
			return t.at(err)
		}
	}
}

func (t *text) stallocEvent(blocks *blocks, line string, now int64) error {
	f := strings.Fields(line)
	if len(f) != 4 || f[0] != "0" && f[0] != "1" {
		return errSTAlloc(line)
	}
	addr, err := parseUint(f[1])
	if err != nil {
		return errSTAlloc(line)
	}
	size, err := parseInt(f[2])
	if err != nil || size < 0 || size > trace.MaxSize {
		return errSTAlloc(line)
	}
	stream, err := parseUint(f[3])
	if err != nil {
		return errSTAlloc(line)
	}
	e := trace.Event{TimeNS: now, Addr: addr, Size: size, Stream: int64(stream)}
	if f[0] == "1" {
		return blocks.alloc(e)
	}
	return blocks.free(e)
}

func errSTAlloc(line string) error {
	return fmt.Errorf("%q, expected 0 or 1, pointer, size and stream", clip(line))
}
