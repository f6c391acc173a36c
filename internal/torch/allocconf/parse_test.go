package allocconf

import "testing"

func TestParse(t *testing.T) {
	with := func(change func(*Conf)) Conf {
		c := Default()
		change(&c)
		return c
	}
	for text, want := range map[string]Conf{
		"":                         Default(),
		"backend:native":           Default(),
		"expandable_segments:True": with(func(c *Conf) { c.Expandable = true }),
		"max_split_size_mb=128, garbage_collection_threshold:0.8": with(func(c *Conf) {
			c.MaxSplitSize, c.GCThreshold = 128<<20, 0.8
		}),
		"roundup_power2_divisions:4": with(func(c *Conf) {
			for i := range c.Divisions {
				c.Divisions[i] = 4
			}
		}),
		// The first entry counts for all smaller sizes, too, and ">" from the entry before it on.
		"roundup_power2_divisions:[2:1,8:4,32:8,>:2]": with(func(c *Conf) {
			c.Divisions = [16]int64{1, 1, 0, 4, 0, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2}
		}),
	} {
		if got, err := Parse(text); err != nil || got != want {
			t.Errorf("Parse(%q) = %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"max_split_size", "max_split_size_mb:19", "max_split_size_mb:x", "expandable_segments:yes", "garbage_collection_threshold:1.5",
		"garbage_collection_threshold:NaN", "roundup_power2_divisions:3", "roundup_power2_divisions:[3:2]", "roundup_power2_divisions:[4]",
		"backend:cudaMallocAsync", "no_such_thing:1", "large_segment_size_mb:21",
	} {
		if _, err := Parse(text); err == nil {
			t.Errorf("Parse(%q): no error", text)
		}
	}
}

func TestRecorded(t *testing.T) {
	conf, unknown := Recorded("max_split_size_mb:64,of_tomorrow:[1:2,3],expandable_segments:True")
	if len(unknown) != 1 || unknown[0] != "of_tomorrow:[1:2,3]" {
		t.Errorf("unknown %q", unknown)
	}
	if conf.MaxSplitSize != 64<<20 || !conf.Expandable {
		t.Errorf("the known ones got lost: %+v", conf)
	}
}

func TestRoundSize(t *testing.T) {
	for _, c := range []struct {
		settings   string
		size, want int64
	}{
		{"", 1, 512},
		{"", 513, 1024},
		{"", 5<<20 + 1, 5<<20 + 512},
		{"roundup_power2_divisions:4", 1200 << 10, 1280 << 10}, // steps of 256 KiB between 1 and 2 MiB
		{"roundup_power2_divisions:4", 1 << 21, 1 << 21},
		{"roundup_power2_divisions:4", 2048, 2048}, // not above 512 times the divisions
		{"roundup_power2_divisions:[1:0,2:8,>:1]", 1200 << 10, 1200 << 10},
		{"roundup_power2_divisions:[1:0,2:8,>:1]", 100<<20 + 7, 100<<20 + 512},
	} {
		conf, err := Parse(c.settings)
		if err != nil {
			t.Fatal(err)
		}
		if got := conf.RoundSize(c.size); got != c.want {
			t.Errorf("%q: RoundSize(%d) = %d, want %d", c.settings, c.size, got, c.want)
		}
	}
}
