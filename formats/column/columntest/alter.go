package columntest

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/parquet-go/parquet-go"
)

// Altered is a decoded file, from which File makes valid Parquet files with changed rows and metadata.
type Altered struct {
	schema *parquet.Schema
	rows   []parquet.Row
	meta   map[string]string
	texts  []string // texts for columns and metadata, besides those of the file
}

// NewAltered decodes a valid file.
func NewAltered(file []byte, texts []string) (*Altered, error) {
	f, err := parquet.OpenFile(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return nil, err
	}
	a := &Altered{schema: f.Schema(), meta: map[string]string{}, texts: texts}
	for _, kv := range f.Metadata().KeyValueMetadata {
		a.meta[kv.Key] = kv.Value
	}
	for _, group := range f.RowGroups() {
		if err := a.take(group); err != nil {
			return nil, err
		}
	}
	return a, nil
}

func (a *Altered) take(group parquet.RowGroup) error {
	rows := group.Rows()
	defer rows.Close()
	for buf := make([]parquet.Row, 128); ; {
		n, err := rows.ReadRows(buf)
		for _, row := range buf[:n] {
			a.rows = append(a.rows, row.Clone())
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// File returns a valid Parquet file with up to eight changes: of values, of metadata, and of rows that are removed, doubled, swapped or
// cut off.
func (a *Altered) File(rng *rand.Rand) ([]byte, error) {
	rows, meta := slices.Clone(a.rows), maps.Clone(a.meta)
	for range []int{1, 1, 1, 2, 3, 8}[rng.IntN(6)] {
		if len(rows) < 3 || rng.IntN(6) == 0 {
			a.alterMeta(rng, meta)
			continue
		}
		i := rng.IntN(len(rows))
		switch rng.IntN(10) {
		case 0:
			rows = slices.Delete(rows, i, i+1)
		case 1:
			rows = slices.Insert(rows, i, rows[rng.IntN(len(rows))])
		case 2:
			j := rng.IntN(len(rows))
			rows[i], rows[j] = rows[j], rows[i]
		case 3:
			rows = rows[:i]
		default:
			rows[i] = a.alterRow(rng, rows, i)
		}
	}
	var out bytes.Buffer
	w := parquet.NewWriter(&out, a.schema, parquet.Compression(&parquet.Zstd), parquet.DataPageVersion(1+rng.IntN(2)))
	for key, value := range meta {
		w.SetKeyValueMetadata(key, value)
	}
	if _, err := w.WriteRows(rows); err != nil {
		return nil, fmt.Errorf("write altered rows: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("write altered rows: %w", err)
	}
	return out.Bytes(), nil
}

// extremes are integers at which errors are likely.
var extremes = []int64{
	0, 1, -1, 2, 511, 512, 1 << 20, 1<<31 - 1, 1 << 31, -1 << 31, 1 << 40, 1 << 47, 1<<47 + 1, 1 << 50, 1<<53 + 1, 1 << 59, 1 << 60, 1 << 61, 1 << 62,
	math.MaxInt64, math.MinInt64,
}

// alterRow returns row i with one value changed.
func (a *Altered) alterRow(rng *rand.Rand, rows []parquet.Row, i int) parquet.Row {
	row := rows[i].Clone()
	c := rng.IntN(len(row))
	old, other := row[c], rows[rng.IntN(len(rows))][c]
	number := func(old, other int64) int64 {
		return []int64{extremes[rng.IntN(len(extremes))], old + rng.Int64N(5) - 2, other, old * 2}[rng.IntN(4)]
	}
	switch old.Kind() {
	case parquet.ByteArray:
		text := a.text(rng)
		if rng.IntN(2) == 0 {
			text = string(other.ByteArray())
		}
		row[c] = parquet.ValueOf([]byte(text)).Level(0, 0, c)
	case parquet.Int32:
		row[c] = parquet.Int32Value(int32(number(int64(old.Int32()), int64(other.Int32())))).Level(0, 0, c)
	case parquet.Int64:
		row[c] = parquet.Int64Value(number(old.Int64(), other.Int64())).Level(0, 0, c)
	}
	return row
}

func (a *Altered) text(rng *rand.Rand) string { return a.texts[rng.IntN(len(a.texts))] }

func (a *Altered) alterMeta(rng *rand.Rand, meta map[string]string) {
	keys := slices.Sorted(maps.Keys(meta))
	if len(keys) == 0 {
		return
	}
	key := keys[rng.IntN(len(keys))]
	n, err := strconv.ParseInt(meta[key], 10, 64)
	switch {
	case rng.IntN(4) == 0:
		delete(meta, key)
	case rng.IntN(3) == 0:
		meta[key] = a.text(rng)
	case err == nil && rng.IntN(2) == 0:
		meta[key] = strconv.FormatInt(n+rng.Int64N(5)-2, 10)
	default:
		meta[key] = strconv.FormatInt(extremes[rng.IntN(len(extremes))], 10)
	}
}
