package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gm/formats/trace"
	"gm/internal/cli"
	"gm/internal/trace/input"
	"gm/internal/trace/tags"
)

// tagPeaks are the most bytes that live of each tag, by GPU.
type tagPeaks map[int32]map[string]int64

// compareTags compares what the tensors of the tags of --tag hold on each GPU.
func (cmd *checkCmd) compareTags(c *cli.Context) ([]checked, error) {
	before, err := readTagPeaks(c, cmd.Before)
	if err != nil {
		return nil, err
	}
	after, err := readTagPeaks(c, cmd.After)
	if err != nil {
		return nil, err
	}
	var all []checked
	for _, tag := range slices.Sorted(maps.Keys(cmd.tags)) {
		if !before.has(tag) && !after.has(tag) {
			return nil, cli.Usage("--tag: no tensor of %s or %s is tagged %s; there are %s", cmd.Before, cmd.After, tag, strings.Join(tagsOf(before, after), ", "))
		}
		allowed := cmd.tags[tag]
		for _, device := range slices.Sorted(maps.Keys(after)) {
			a, b := before[device][tag], after[device][tag]
			all = append(all, checked{Device: device, What: tag, Before: a, After: b, Most: allowed.most(a), OK: b <= allowed.most(a), allowed: allowed.text})
		}
	}
	return all, nil
}

func readTagPeaks(c *cli.Context, name string) (peaks tagPeaks, err error) {
	source, err := input.Open(c, name)
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	labels, err := trace.ReadSource(source, tags.Derive)
	if err != nil {
		return nil, err
	}
	return trace.ReadSource(source, func(r *trace.Reader) (tagPeaks, error) { return labels.Peaks(r) })
}

func (p tagPeaks) has(tag string) bool {
	for _, byTag := range p {
		if byTag[tag] > 0 {
			return true
		}
	}
	return false
}

// tagsOf returns the tags of some traces.
func tagsOf(all ...tagPeaks) []string {
	found := map[string]bool{}
	for _, peaks := range all {
		for _, byTag := range peaks {
			for tag := range byTag {
				found[tag] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}
