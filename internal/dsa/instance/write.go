package instance

import (
	"bufio"
	"fmt"
	"io"
	"strconv"

	"gm/internal/dsa"
)

// Write writes the rows in the order in which they were read, with the offsets of a layout for each arena. They go to the column offset, or
// to a new last column when there is none.
func (in *Instance) Write(w io.Writer, layouts []dsa.Layout) error {
	offsets := make([]int64, in.rows)
	for i, a := range in.Arenas {
		for k, row := range a.Rows {
			offsets[row] = layouts[i].Offsets[k]
		}
	}
	out := bufio.NewWriterSize(w, 1<<16)
	l := lines{rest: in.text}
	header, _ := l.next()
	out.WriteString(header)
	if !in.columns.has(offset) {
		out.WriteString("," + offset.String())
	}
	out.WriteByte('\n')
	var line []byte
	for _, at := range offsets {
		text, _ := l.next()
		line = in.withOffset(line[:0], text, at)
		out.Write(line)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write instance: %w", err)
	}
	return nil
}

// withOffset appends a line with its offset to dst.
func (in *Instance) withOffset(dst []byte, line string, at int64) []byte {
	place := in.columns.place[offset]
	if place < 0 {
		dst = append(append(dst, line...), ',')
		return append(strconv.AppendInt(dst, at, 10), '\n')
	}
	from := 0
	for ; place > 0; from++ {
		if line[from] == ',' {
			place--
		}
	}
	to := from
	for to < len(line) && line[to] != ',' {
		to++
	}
	dst = strconv.AppendInt(append(dst, line[:from]...), at, 10)
	return append(append(dst, line[to:]...), '\n')
}
