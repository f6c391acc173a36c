package main

import (
	"fmt"
	"slices"
	"strings"

	"gm/internal/libgm/page"
)

// holdersMax is how many lines a list of holders has.
const holdersMax = 5

// failure counts a request that failed and returns the text for it. It begins as PyTorch's does, which programs look for.
func (g *gpu) failure(size int64, err error) string {
	g.account.open()
	g.account.OOMs++
	g.account.close()
	if !noMemory(err) {
		g.complain(fmt.Sprintf("request of %d bytes", size), err)
	}
	free, total, infoErr := g.meter.Device.MemInfo()
	if infoErr != nil {
		total = g.meter.total
	}
	a := g.account.copy()
	var text strings.Builder
	fmt.Fprintf(&text, "CUDA out of memory. Tried to allocate %s. GPU %d has a total capacity of %s of which %s is free.",
		amount(size), g.ordinal, amount(total), amount(free))
	if g.meter.limit < g.meter.total {
		fmt.Fprintf(&text, " %s allowed;", amount(g.meter.limit))
	}
	fmt.Fprintf(&text, " Of the memory that gm holds, %s is allocated by PyTorch, and %s is reserved by gm but unallocated.",
		amount(a.AllocatedBytes[page.All].Current), amount(a.ReservedBytes[page.All].Current-a.AllocatedBytes[page.All].Current))
	g.writeHolders(&text)
	if !noMemory(err) {
		fmt.Fprintf(&text, " The driver says: %v.", err)
	}
	return text.String()
}

// holder is the live requests of one size.
type holder struct{ size, count int64 }

// writeHolders writes the largest live requests, and the sizes that take the most.
func (g *gpu) writeHolders(text *strings.Builder) {
	counts := map[int64]int64{}
	g.each(func(e *entry) { counts[e.requested]++ })
	var holders []holder
	for size, count := range counts {
		holders = append(holders, holder{size, count})
	}
	if len(holders) == 0 {
		return
	}
	slices.SortFunc(holders, func(a, b holder) int { return int(b.size - a.size) })
	text.WriteString(" The largest live blocks:")
	writeList(text, holders, func(h holder) string { return amount(h.size) })
	slices.SortStableFunc(holders, func(a, b holder) int { return int(b.size*b.count - a.size*a.count) })
	text.WriteString(" The sizes that hold the most:")
	writeList(text, holders, func(h holder) string { return fmt.Sprintf("%d x %s", h.count, amount(h.size)) })
}

func writeList(text *strings.Builder, holders []holder, one func(h holder) string) {
	for i, h := range holders[:min(len(holders), holdersMax)] {
		if i > 0 {
			text.WriteByte(',')
		}
		text.WriteByte(' ')
		text.WriteString(one(h))
	}
	text.WriteByte('.')
}

// amount writes bytes as PyTorch does (format_size).
func amount(bytes int64) string {
	switch {
	case bytes <= 1024:
		return fmt.Sprintf("%d bytes", bytes)
	case bytes <= 1<<20:
		return fmt.Sprintf("%.2f KiB", float64(bytes)/(1<<10))
	case bytes <= 1<<30:
		return fmt.Sprintf("%.2f MiB", float64(bytes)/(1<<20))
	}
	return fmt.Sprintf("%.2f GiB", float64(bytes)/(1<<30))
}
