package page

import (
	"slices"

	"gm/formats/trace"
	"gm/internal/report"
	"gm/internal/trace/changes"
)

// match names the groups of stacks of two recordings that are compared. Stacks that are the same in both, as [changes.Match] finds them, are
// one group.
func match(a, b *Recording) {
	all := []string{""} // what has no stack is a group
	matched := map[*part]map[string]string{}
	for _, level := range []trace.Level{trace.LevelFramework, trace.LevelDriver} {
		ofA, ofB := changes.Match(a.stacks(level), b.stacks(level))
		for r, of := range map[*Recording]map[string]string{a: ofA, b: ofB} {
			for _, p := range r.parts {
				if p.level == level {
					matched[p] = of
				}
			}
			for _, stack := range of {
				all = append(all, stack)
			}
		}
	}
	slices.Sort(all)
	names := report.NewStackNames(all, stackName)
	for p, of := range matched {
		p.groups = map[string]string{}
		for _, stack := range p.stacks {
			p.groups[stack] = names.Of(of[stack])
		}
	}
}

// stacks returns the distinct stacks of a level of software.
func (r *Recording) stacks(level trace.Level) []string {
	var all []string
	for _, p := range r.parts {
		if p.level == level {
			all = append(all, p.stacks...)
		}
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(stack string) bool { return stack == "" })
}
