package units

import "testing"

func TestParseBytes(t *testing.T) {
	for text, want := range map[string]Bytes{
		"0": 0, "4096": 4096, "512M": 512 << 20, "512m": 512 << 20, "40GiB": 40 << 30, "40Gi": 40 << 30, "40G": 40 << 30, "40gb": 40e9, "1.5 GB": 1_500_000_000, "2KiB": 2048, "3b": 3,
		"0.5K": 512,
	} {
		if got, err := ParseBytes(text); err != nil || got != want {
			t.Errorf("ParseBytes(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "GiB", "-1", "1Q", "1.5", "0.5B", "12 34", "99999999TiB", "NaN", "1..2"} {
		if got, err := ParseBytes(text); err == nil {
			t.Errorf("ParseBytes(%q) = %d, want an error", text, got)
		}
	}
}

func TestParseAmount(t *testing.T) {
	for text, want := range map[string]Bytes{"0": 0, "1048576": 1 << 20, "40B": 40, "40GiB": 40 << 30, "42949672960": 40 << 30} {
		if got, err := ParseAmount(text); err != nil || got != want {
			t.Errorf("ParseAmount(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"40", "1.5", "1048575", "", "x"} {
		if got, err := ParseAmount(text); err == nil {
			t.Errorf("ParseAmount(%q) = %d, want an error", text, got)
		}
	}
	var b Bytes
	if err := b.UnmarshalText([]byte("40")); err == nil || err.Error() != "40 bytes? Write 40GiB or 40MiB, or 40B for bytes" {
		t.Error(err)
	}
	var f Few
	if err := f.UnmarshalText([]byte("512")); err != nil || f != 512 || f.UnmarshalText([]byte("0")) == nil {
		t.Error(f, err)
	}
}

func TestBytesString(t *testing.T) {
	for b, want := range map[Bytes]string{
		0: "0 B", 512: "512 B", 1536: "1.50 KiB", 20 << 20: "20 MiB", 41888643072: "39.01 GiB", 150754820096: "140.4 GiB", -2048: "-2 KiB",
	} {
		if got := b.String(); got != want {
			t.Errorf("Bytes(%d) = %q, want %q", int64(b), got, want)
		}
	}
}
