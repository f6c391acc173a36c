package exporter

import (
	"strconv"
	"strings"

	"gm/formats/trace"
)

const csvHeader = "time_ns,op,id,size,addr,device,stream,pool,thread,level,stack,tag,derived,certainty,rule\n"

// csv writes all rows as plain CSV, which the importer reads. The last three columns are what package tags says of a framework's
// allocation.
func (x *export) csv() error {
	labels, err := x.labels()
	if err != nil {
		return err
	}
	x.out.WriteString(csvHeader)
	fields := map[int32]string{}
	field := func(r *trace.Reader, code int32) string {
		text, known := fields[code]
		if !known {
			text = csvField(r.Strings().Text(code))
			fields[code] = text
		}
		return text
	}
	var line []byte
	return x.each(func(r *trace.Reader, _ int64, e *trace.Event) error {
		line = strconv.AppendInt(line[:0], e.TimeNS, 10)
		line = append(append(line, ','), e.Op.String()...)
		line = strconv.AppendInt(append(line, ','), e.ID, 10)
		line = strconv.AppendInt(append(line, ','), e.Size, 10)
		line = strconv.AppendUint(append(line, ",0x"...), e.Addr, 16)
		line = strconv.AppendInt(append(line, ','), int64(e.Device), 10)
		line = strconv.AppendInt(append(line, ','), e.Stream, 10)
		line = append(append(line, ','), field(r, e.Pool)...)
		line = strconv.AppendInt(append(line, ','), int64(e.Thread), 10)
		line = append(append(line, ','), e.Level.String()...)
		line = append(append(line, ','), field(r, e.Stack)...)
		line = append(append(line, ','), field(r, e.Tag)...)
		if e.Op == trace.OpAlloc && e.Level == trace.LevelFramework {
			l := labels.Of(e.ID)
			line = append(append(line, ','), csvField(l.Tag)...)
			line = append(append(line, ','), l.Certainty...)
			line = append(append(line, ','), csvField(l.Rule)...)
		} else {
			line = append(line, ",,,"...)
		}
		_, err := x.out.Write(append(line, '\n'))
		return err
	})
}

// csvField quotes a text if necessary. Line breaks in it are replaced.
func csvField(text string) string {
	text = oneLine(text)
	if !strings.ContainsAny(text, `,"`) {
		return text
	}
	return `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
}

func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' {
			return ' '
		}
		return r
	}, text)
}
