package profile

import (
	"path"
	"strings"

	"github.com/google/pprof/profile"

	"gm/formats/trace"
)

// places are the distinct functions and lines of a profile.
type places struct {
	to        *profile.Profile
	functions map[function]*profile.Function
	locations map[string]*profile.Location // by frame
}

type function struct{ name, file string }

func newPlaces(to *profile.Profile) *places {
	return &places{to: to, functions: map[function]*profile.Function{}, locations: map[string]*profile.Location{}}
}

// noStack is the frame of allocations without a stack.
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

// title returns the name of a function, for Python with that of its module: pprof shows only the name, and many functions are called
// forward. Angle brackets are removed, since pprof takes them for template arguments.
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

// parseFrame parses a frame. Native code without a known file has the file "??".
func parseFrame(text string) (f function, line int64) {
	frame := trace.ParseFrame(text)
	if frame.File == "??" {
		frame.File = ""
	}
	return function{frame.Name, frame.File}, frame.Line
}
