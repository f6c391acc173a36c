package main

import (
	"fmt"
	"strconv"
	"strings"
)

// beyondResults is what experiments/swap/beyond.py measured on an H200: a row for each way to run a program with a batch.
const beyondResults = "experiments/swap/results/beyond-h200.csv"

// measureBeyond adds samples a second with batches that do not fit the card, under gmswap without a limit beside the checkpoints of libraries.
func measureBeyond(e *experiment) error {
	rows, err := readTable(beyondResults)
	if err != nil {
		return err
	}
	const program, way, batch, times, ok, samples, losses = 0, 1, 2, 3, 4, 6, 9
	byHand := map[string][]string{} // rows by program and batch
	for i, r := range rows[1:] {
		key := r[program] + " " + r[batch]
		switch r[way] {
		case "by hand":
			byHand[key] = r
		case "gmswap":
			name := fmt.Sprintf("swap: %s, %s in a batch, %s times what fits, samples a second", r[program], r[batch], r[times])
			hand := byHand[key]
			if hand == nil {
				return fmt.Errorf("read %s: row %d: %s was not run by hand", beyondResults, i+1, key)
			}
			if hand[ok] != "yes" || r[ok] != "yes" {
				e.add(name, ended(r[ok]), ended(hand[ok])+", by hand", r[ok] == "yes" || hand[ok] != "yes")
				continue
			}
			took, err := strconv.ParseFloat(r[samples], 64)
			if err != nil {
				return fmt.Errorf("read %s: row %d: %w", beyondResults, i+1, err)
			}
			least, err := strconv.ParseFloat(hand[samples], 64)
			if err != nil {
				return fmt.Errorf("read %s: row %d by hand: %w", beyondResults, i+1, err)
			}
			bits := ""
			if r[losses] == hand[losses] {
				bits = ", the same losses"
			}
			e.add(name, fmt.Sprintf("%.1f%s", took, bits), fmt.Sprintf("%.1f, by hand", least), took >= least)
		}
	}
	return nil
}

// ended returns how a run ended.
func ended(ok string) string {
	if ok == "yes" {
		return "runs"
	}
	reason, _, _ := strings.Cut(ok, ":")
	return reason
}
