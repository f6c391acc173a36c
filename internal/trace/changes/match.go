package changes

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"gm/formats/trace"
)

// match says which stacks of two runs are the same: it returns the name in the comparison of each stack of a and of b. Where most
// stacks are found in both as they are, the others are matched by the names of their functions. Where they are not, the
// program has changed between the runs, and so have its line numbers: all are matched by name, those of one
// name in the order of their lines, or together if there are not as many in both.
func match(a, b []string) (ofA, ofB map[string]string) {
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

// shape is a stack taken apart: the names of its functions and files, and its lines.
type shape struct {
	stack string
	names string
	lines []int64
}

// shapes returns the stacks that are not yet matched by their names, in the order of their lines.
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

// parseShape takes "name (file:line);..." apart. Of files the last part of the path counts, of addresses nothing; nor does what
// started the program, such as runpy, of which the files are "<stdin>" or "<frozen runpy>".
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
