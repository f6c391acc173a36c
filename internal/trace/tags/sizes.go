package tags

// compareSizes finds the facts that follow from other blocks of the same size.
func compareSizes(d *device, all []facts) {
	parameters, held := map[int64]bool{}, map[int64]bool{}
	count := 0
	for i := range all {
		switch f := &all[i]; {
		case f.born == building && f.throughout:
			parameters[d.blocks[i].size] = true
			count++
		case f.pass() && f.kept() && !f.early:
			held[d.blocks[i].size] = true
		}
	}
	var kept []*facts // possible gradients
	for i := range all {
		f, size := &all[i], d.blocks[i].size
		f.sized, f.repeated = parameters[size], held[size] && !f.freed
		if f.born == backward && f.sized {
			f.gradient = !f.freed && f.updates == 0 || f.freed && !f.throughout && f.updates > 1
			if f.kept() {
				kept = append(kept, f)
			}
		}
	}
	if 8*len(kept) < count { // too few: their size is a coincidence
		return
	}
	for _, f := range kept {
		f.gradient = true
	}
}

// compareOlder separates parameters from the optimizer's state among the blocks that are older than the recording and have no stack.
// There are as many parameters of a size as gradients; if there are no gradients, all blocks are parameters. Which block of a size is a
// parameter is unknown.
func compareOlder(d *device, all []facts) {
	gradients := gradientSizes(d, all)
	if len(gradients) == 0 {
		return
	}
	count := map[int64]int{}
	for i := range all {
		f, size := &all[i], d.blocks[i].size
		if !f.preexisting || f.origin != unsaid || !f.throughout {
			continue
		}
		count[size]++
		if f.older = asParameter; gradients[size] > 0 && count[size] > gradients[size] {
			f.older = asState
		}
	}
}

// gradientSizes returns the number of gradients of each size, in the iteration with the most of them.
func gradientSizes(d *device, all []facts) map[int64]int {
	byIteration := map[int]map[int64]int{}
	totals := map[int]int{}
	best := 0
	for i := range all {
		f := &all[i]
		if f.born != backward || f.updates != 1 || f.origin == recompute {
			continue
		}
		if byIteration[f.iteration] == nil {
			byIteration[f.iteration] = map[int64]int{}
		}
		byIteration[f.iteration][d.blocks[i].size]++
		if totals[f.iteration]++; totals[f.iteration] > totals[best] {
			best = f.iteration
		}
	}
	return byIteration[best]
}
