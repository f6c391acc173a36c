package main

import (
	"encoding/csv"
	"fmt"
	"os"
)

// readTable returns the rows of a file of semicolon-separated values, the names of the columns first.
func readTable(path string) ([][]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.Comma = ';'
	rows, err := r.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return rows, nil
}
