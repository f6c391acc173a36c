package profile

import (
	"path"
	"strconv"
	"strings"

	"github.com/google/pprof/profile"
)

// places are the functions and lines of a profile, each once.
type places struct {
	to        *profile.Profile
	functions map[function]*profile.Function
	locations map[string]*profile.Location // by frame
}

type function struct{ name, file string }

func newPlaces(to *profile.Profile) *places {
	return &places{to: to, functions: map[function]*profile.Function{}, locations: map[string]*profile.Location{}}
}

// noStack is the frame of allocations that have none.
const noStack = "(no stack)"

// stack returns the lines of a folded stack, "outermost;...;innermost", innermost first.
func (p *places) stack(folded string) []*profile.Location {
	if folded == "" {
		folded = noStack
	}
	frames := strings.Split(folded, ";")
	lines := make([]*profile.Location, 0, len(frames))
	for i := len(frames) - 1; i >= 0; i-- {
		lines = append(lines, p.line(frames[i]))
	}
	return lines
}

// line returns the line of a frame.
func (p *places) line(frame string) *profile.Location {
	l := p.locations[frame]
	if l == nil {
		f, number := parseFrame(frame)
		l = &profile.Location{ID: uint64(len(p.to.Location) + 1), Line: []profile.Line{{Function: p.function(f), Line: number}}}
		p.locations[frame] = l
		p.to.Location = append(p.to.Location, l)
	}
	return l
}

func (p *places) function(f function) *profile.Function {
	of := p.functions[f]
	if of == nil {
		of = &profile.Function{ID: uint64(len(p.to.Function) + 1), Name: f.title(), SystemName: f.name, Filename: f.file}
		p.functions[f] = of
		p.to.Function = append(p.to.Function, of)
	}
	return of
}

// title returns the name of a function with that of its module, for Python, where many are called forward: pprof shows nothing else. It
// takes what is in angle brackets for arguments of a template, so they are left out.
func (f function) title() string {
	module, ok := strings.CutSuffix(path.Base(f.file), ".py")
	switch {
	case !ok:
		return f.name
	case f.name == "<module>":
		return module
	}
	return module + "." + strings.Trim(f.name, "<>")
}

// parseFrame takes "name (file:line)" apart. The file is "" and the line 0 where they are not known, which is "??:0" for native code.
func parseFrame(frame string) (f function, line int64) {
	at := strings.LastIndex(frame, " (")
	if at < 0 || !strings.HasSuffix(frame, ")") {
		return function{name: frame}, 0
	}
	place := frame[at+2 : len(frame)-1]
	colon := strings.LastIndexByte(place, ':')
	if colon < 0 {
		return function{name: frame}, 0
	}
	line, err := strconv.ParseInt(place[colon+1:], 10, 64)
	if err != nil || line < 0 {
		return function{name: frame}, 0
	}
	f = function{frame[:at], place[:colon]}
	if f.file == "??" {
		f.file = ""
	}
	return f, line
}
