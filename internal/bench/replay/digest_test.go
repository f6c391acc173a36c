package replay_test

import (
	"testing"

	"gm/internal/bench/replay"
)

// TestDigest changes one thing of a program at a time.
func TestDigest(t *testing.T) {
	load := func() *replay.Program {
		programs, err := replay.Open("../../../testdata/captures/opt1.3b.parquet")
		if err != nil {
			t.Fatal(err)
		}
		return programs[0]
	}
	base := load().Digest()
	for name, c := range map[string]struct {
		change func(p *replay.Program)
		alike  bool
	}{
		"nothing": {func(*replay.Program) {}, true},
		"times":   {func(p *replay.Program) { p.TimesNS[3]++ }, true},
		"rows":    {func(p *replay.Program) { p.Rows[3]++ }, true},
		"name":    {func(p *replay.Program) { p.Name = "x" }, true},
		"handles": {func(p *replay.Program) {
			for i := range p.Streams {
				p.Streams[i] = p.Streams[i]*3 + 17
			}
		}, true},
		"stream of one":    {func(p *replay.Program) { p.Streams[5] += 1000 }, false},
		"size":             {func(p *replay.Program) { p.Sizes[5]++ }, false},
		"pool":             {func(p *replay.Program) { p.Pools[5] += 7 }, false},
		"kind":             {func(p *replay.Program) { p.Kinds[len(p.Kinds)-1] = replay.Empty }, false},
		"tensor of a step": {func(p *replay.Program) { p.Tensors[len(p.Tensors)-1]++ }, false},
		"settings":         {func(p *replay.Program) { p.AllocConf += ",max_split_size_mb:32" }, false},
		"alignment":        {func(p *replay.Program) { p.Align *= 2 }, false},
		"last tensor":      {func(p *replay.Program) { p.Sizes[len(p.Sizes)-1]++ }, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := load()
			c.change(p)
			if alike := p.Digest() == base; alike != c.alike {
				t.Errorf("the same digest: %t, want %t", alike, c.alike)
			}
		})
	}
}
