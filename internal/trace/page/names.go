package page

import (
	"path"
	"slices"
	"strings"

	"gm/internal/report"
)

// TellApart names recordings that are shown on one page: by the base names of their files or, where these are not all different, by what
// differs between their paths.
func TellApart(all ...*Recording) {
	var paths []string
	for _, r := range all {
		paths = append(paths, r.path)
	}
	for i, name := range differing(paths) {
		all[i].Name = report.Printable(name)
	}
}

// differing returns the base names of paths if they are all different. If not, it returns the paths without the folders that all begin
// with, and without the folders and the name that all end with.
func differing(paths []string) []string {
	var split [][]string
	var bases []string
	for _, p := range paths {
		split = append(split, strings.Split(path.Clean(p), "/"))
		bases = append(bases, path.Base(p))
	}
	if len(slices.Compact(slices.Sorted(slices.Values(bases)))) == len(paths) {
		return bases
	}
	begin := common(split)
	for i, parts := range split {
		split[i] = slices.Clone(parts[begin:])
		slices.Reverse(split[i])
	}
	end := common(split)
	names := make([]string, len(paths))
	for i, parts := range split {
		parts = parts[end:]
		slices.Reverse(parts)
		if names[i] = strings.Join(parts, "/"); names[i] == "" {
			names[i] = bases[i]
		}
	}
	return names
}

// common returns how many of their first elements lists have in common.
func common(lists [][]string) int {
	for n := 0; ; n++ {
		for _, list := range lists {
			if n == len(list) || list[n] != lists[0][n] {
				return n
			}
		}
	}
}
