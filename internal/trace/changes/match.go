package changes

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"gm/formats/trace"
)

// Match finds which folded stacks of two runs are the same: it returns the name of each stack of a and of b in the comparison. If most
// stacks occur unchanged in both, only the others are matched by the names of their functions. Otherwise the program has
// changed between the runs, and so have its line numbers: all stacks are matched by name. Stacks of the same name are matched in
// the order of their lines, or merged if their numbers differ.
func Match(a, b []string) (ofA, ofB map[string]string) {
	ofA, ofB = map[string]string{}, map[string]string{}
	inA := map[string]bool{}
	for _, stack := range a {
		inA[stack] = true
	}
	common := 0
	for _, stack := range b {
		if inA[stack] {
			common++
		}
	}
	if 2*common >= min(len(a), len(b)) {
		for _, stack := range b {
			if inA[stack] {
				ofA[stack], ofB[stack] = stack, stack
			}
		}
	}
	shapesA, shapesB := shapes(a, ofA), shapes(b, ofB)
	for names, as := range shapesA {
		bs := shapesB[names]
		for i, s := range as {
			switch {
			case len(bs) == 0:
				ofA[s.stack] = s.stack
			case len(bs) == len(as):
				ofA[s.stack] = bs[i].stack
			default:
				ofA[s.stack] = bs[0].stack
			}
		}
	}
	for names, bs := range shapesB {
		as := shapesA[names]
		for _, s := range bs {
			if len(as) == 0 || len(as) == len(bs) {
				ofB[s.stack] = s.stack
			} else {
				ofB[s.stack] = bs[0].stack
			}
		}
	}
	return ofA, ofB
}

// shape is a parsed stack: the names of its functions and files, and its lines.
type shape struct {
	stack string
	names string
	lines []int64
}

// shapes returns the stacks that are not yet matched, by name, in the order of their lines.
func shapes(stacks []string, matched map[string]string) map[string][]shape {
	all := map[string][]shape{}
	for _, stack := range stacks {
		if _, ok := matched[stack]; !ok {
			s := parseShape(stack)
			all[s.names] = append(all[s.names], s)
		}
	}
	for _, of := range all {
		slices.SortFunc(of, func(x, y shape) int {
			if n := slices.Compare(x.lines, y.lines); n != 0 {
				return n
			}
			return strings.Compare(x.stack, y.stack)
		})
	}
	return all
}

var addresses = regexp.MustCompile(`0x[0-9a-fA-F]+`)

// parseShape parses "name (file:line);...". It keeps the last part of a file's path, and drops addresses and the outermost frames that
// start a program, such as runpy's, whose files are "<stdin>" or "<frozen runpy>".
func parseShape(stack string) shape {
	s := shape{stack: stack}
	var names []string
	for frame := range strings.SplitSeq(stack, ";") {
		f := trace.ParseFrame(frame)
		if strings.HasPrefix(f.File, "<") && len(names) == 0 {
			continue
		}
		names = append(names, f.Name+" "+path.Base(f.File))
		s.lines = append(s.lines, f.Line)
	}
	if len(names) == 0 {
		names = []string{stack}
	}
	s.names = addresses.ReplaceAllString(strings.Join(names, ";"), "0x")
	return s
}
