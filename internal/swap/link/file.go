package link

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"gm/internal/jsonvalue"
)

// Bounds of what a file may say.
const (
	maxFile     = 1 << 20 // bytes
	maxGPUs     = 1024
	maxBytes    = 1 << 50
	minRate     = 1 << 20 // bytes per second
	maxRate     = 1 << 50
	maxNS       = 3_600_000_000_000 // an hour
	maxSlowdown = 1000
)

// Read reads and checks a file that gmswap bandwidth wrote. Errors name the file and what in it is wrong.
func Read(path string) (l *Link, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("link: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if l, err = read(f); err != nil {
		return nil, fmt.Errorf("link %s: %w", path, err)
	}
	return l, nil
}

func read(r io.Reader) (*Link, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, err
	}
	return Parse(text)
}

// Parse reads and checks what a file would hold, such as the link that a schedule was made for.
func Parse(text []byte) (*Link, error) {
	if len(text) > maxFile {
		return nil, fmt.Errorf("more than %d bytes", maxFile)
	}
	var l Link
	if err := jsonvalue.Explain(json.Unmarshal(text, &l)); err != nil {
		return nil, err
	}
	if err := l.check(); err != nil {
		return nil, err
	}
	return &l, nil
}

// Write writes l as JSON that Read reads.
func (l *Link) Write(w io.Writer) error {
	out := json.NewEncoder(w)
	out.SetIndent("", " ")
	return out.Encode(l)
}

func (l *Link) check() error {
	switch {
	case l.Schema == "":
		return errors.New("no schema: gmswap bandwidth writes such files")
	case l.Schema != Schema && strings.HasPrefix(l.Schema, "gm link "):
		return fmt.Errorf("it has schema %q, this program reads %q", l.Schema, Schema)
	case l.Schema != Schema:
		return fmt.Errorf("it is not a link file: its schema is %q", l.Schema)
	case len(l.GPUs) == 0 || len(l.GPUs) > maxGPUs:
		return fmt.Errorf("%d gpus, at least 1 and at most %d are possible", len(l.GPUs), maxGPUs)
	}
	for i := range l.GPUs {
		if err := l.GPUs[i].check(); err != nil {
			return fmt.Errorf("gpus[%d]: %w", i, err)
		}
	}
	return nil
}

func (g *GPU) check() error {
	if g.Ordinal < 0 || g.NUMANode < -1 {
		return fmt.Errorf("ordinal %d on numa_node %d", g.Ordinal, g.NUMANode)
	}
	if g.TouchNS < 0 || g.TouchNS > maxNS || g.RegisterNS < 0 || g.RegisterNS > maxNS {
		return fmt.Errorf("%d touch_ns_per_gib and %d register_ns_per_gib are not within 0 and an hour", g.TouchNS, g.RegisterNS)
	}
	if !(g.MemorySlowdown > 0 && g.MemorySlowdown <= maxSlowdown) {
		return fmt.Errorf("memory_slowdown %v is not within 0 and %d", g.MemorySlowdown, maxSlowdown)
	}
	if len(g.Alone) == 0 {
		return errors.New("no figures in alone")
	}
	if err := checkRates(g.Alone); err != nil {
		return fmt.Errorf("alone%w", err)
	}
	if err := checkRates(g.Together); err != nil {
		return fmt.Errorf("together%w", err)
	}
	return nil
}

// checkRates also sees that a larger copy takes longer, as times between two sizes are on the line between theirs.
func checkRates(rates []Rate) error {
	for i := range rates {
		r := &rates[i]
		if r.Bytes <= 0 || r.Bytes > maxBytes || i > 0 && r.Bytes <= rates[i-1].Bytes {
			return fmt.Errorf("[%d]: %d bytes: sizes must grow, from 1 on", i, r.Bytes)
		}
		for _, w := range ways {
			rate := w.of(r)
			if rate < minRate || rate > maxRate {
				return fmt.Errorf("[%d]: %d %s, expected %d to %d", i, rate, w.name, minRate, maxRate)
			}
			if i > 0 && r.seconds(w.of) < rates[i-1].seconds(w.of) {
				return fmt.Errorf("[%d]: %d bytes at %d %s take less time than %d bytes", i, r.Bytes, rate, w.name, rates[i-1].Bytes)
			}
		}
	}
	return nil
}

var ways = [...]struct {
	name string
	of   way
}{
	{"out_bytes_per_s", outWay}, {"in_bytes_per_s", inWay}, {"both_out_bytes_per_s", bothOutWay}, {"both_in_bytes_per_s", bothInWay},
}
