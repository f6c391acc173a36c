package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// StackNames are short names of stacks, by folded stack. Different stacks have different names.
type StackNames map[string]string

// NewStackNames shortens stacks to width characters. Stacks that would get the same name show the frames that differ in place of the
// innermost ones or, if no visible frame differs, the number of all their frames. That depends on no other stack, so that the same stack is
// called the same beside others. Those of equally many frames get numbers.
func NewStackNames(stacks []string, width int) StackNames {
	names := StackNames{}
	byText := map[string][]stackFrames{}
	for _, folded := range stacks {
		if _, seen := names[folded]; seen {
			continue
		}
		text := Stack(folded, width)
		names[folded] = text
		byText[text] = append(byText[text], newStackFrames(folded, text))
	}
	for _, same := range byText {
		if len(same) > 1 {
			names.tellApart(same, 0)
		}
	}
	return names
}

// Of returns the name of a stack, and other text unchanged.
func (n StackNames) Of(name string) string {
	if text, ok := n[name]; ok {
		return text
	}
	return name
}

// tellApart names stacks whose first frames, up to number from, are the same.
func (n StackNames) tellApart(stacks []stackFrames, from int) {
	if len(stacks) == 1 {
		n[stacks[0].folded] = stacks[0].text()
		return
	}
	at, longest := from, 0
	for _, s := range stacks {
		longest = max(longest, len(s.frames))
	}
	differs := func(s stackFrames) bool { return s.frame(at) != stacks[0].frame(at) }
	for at < longest && !slices.ContainsFunc(stacks, differs) {
		at++
	}
	if at >= longest {
		n.count(stacks)
		return
	}
	byFrame := map[string][]stackFrames{}
	for _, s := range stacks {
		frame := s.frame(at)
		if frame != "" {
			s.shown = append(slices.Clone(s.shown), at)
		}
		byFrame[frame] = append(byFrame[frame], s)
	}
	for _, same := range byFrame {
		n.tellApart(same, at+1)
	}
}

// count names stacks of which all visible frames are the same.
func (n StackNames) count(stacks []stackFrames) {
	byDepth := map[int][]stackFrames{}
	for _, s := range stacks {
		depth := strings.Count(s.folded, ";") + 1
		byDepth[depth] = append(byDepth[depth], s)
	}
	for depth, same := range byDepth {
		slices.SortFunc(same, func(a, b stackFrames) int { return strings.Compare(a.folded, b.folded) })
		for i, s := range same {
			n[s.folded] = fmt.Sprintf("%s (%d frames)", s.text(), depth)
			if len(same) > 1 {
				n[s.folded] += fmt.Sprintf(" #%d", i+1)
			}
		}
	}
}

// stackFrames is a parsed stack.
type stackFrames struct {
	folded string
	frames []string // as they are shown, innermost first
	shown  []int    // indexes of the shown frames
}

// newStackFrames parses a stack and shows the first and last frames of its short form.
func newStackFrames(folded, text string) stackFrames {
	s := stackFrames{folded: folded, frames: strings.Split(Stack(folded, math.MaxInt), between), shown: []int{0}}
	short := strings.Split(text, between)
	end, cut := strings.CutSuffix(short[len(short)-1], "…")
	if own := slices.IndexFunc(s.frames, func(frame string) bool { return frame == end || cut && strings.HasPrefix(frame, end) }); own > 0 {
		s.shown = append(s.shown, own)
	}
	return s
}

// frame returns frame n, "" after the last.
func (s stackFrames) frame(n int) string {
	if n < len(s.frames) {
		return s.frames[n]
	}
	return ""
}

// text returns the shown frames, with dots for those between.
func (s stackFrames) text() string {
	var parts []string
	last := -1
	slices.Sort(s.shown)
	for _, n := range slices.Compact(s.shown) {
		if n > last+1 {
			parts = append(parts, "…")
		}
		parts = append(parts, s.frames[n])
		last = n
	}
	return strings.Join(parts, between)
}
