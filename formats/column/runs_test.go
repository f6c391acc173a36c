package column

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/encoding/rle"
)

// randomRuns returns n integers below limit, some of them repeated.
func randomRuns(rng *rand.Rand, n int, limit int64) []int64 {
	var values []int64
	for len(values) < n {
		v, times := rng.Int64N(limit), 1
		if rng.IntN(8) == 0 {
			times = rng.IntN(50)
		}
		for range min(times, n-len(values)) {
			values = append(values, v)
		}
	}
	return values
}

// The output of the encoders is accepted; truncated data and wrong counts are not.
func TestChecksOnEncoded(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		n := 1 + rng.IntN(700)
		values := randomRuns(rng, n, 1+rng.Int64N(1<<rng.IntN(30)))
		narrow := make([]int32, n)
		for i, v := range values {
			narrow[i] = int32(v)
		}
		var runs rle.DictionaryEncoding
		src, err := runs.EncodeInt32(nil, narrow)
		if err != nil {
			t.Fatal(err)
		}
		width, src := int(src[0]), src[1:]
		if width == 0 {
			continue // the one value takes no bits, and this encoder then writes a count that nobody reads
		}
		if err := checkRuns(src, width, int64(n)); err != nil {
			t.Fatalf("%d runs of %d bits: %v", n, width, err)
		}
		if checkRuns(src[:len(src)-1], width, int64(n)) == nil || checkRuns(src, width, int64(n+8)) == nil {
			t.Fatalf("%d runs of %d bits: damaged and taken", n, width)
		}
		var deltas delta.BinaryPackedEncoding
		if src, err = deltas.EncodeInt64(nil, values); err != nil {
			t.Fatal(err)
		}
		if rest, err := checkDelta(append(src, "rest"...), int64(n), 64); err != nil || string(rest) != "rest" {
			t.Fatalf("%d deltas: %v, %d bytes left", n, err, len(rest))
		}
		if _, err := checkDelta(src, int64(n+1), 64); err == nil {
			t.Fatalf("%d deltas: another count taken", n)
		}
	}
}

func uvarints(values ...uint64) []byte {
	var b []byte
	for _, v := range values {
		b = binary.AppendUvarint(b, v)
	}
	return b
}

func TestChecksOnHostile(t *testing.T) {
	for name, c := range map[string]struct {
		src   []byte
		width int
		want  string
	}{
		"run of 2^31":              {append(uvarints(1<<32), 1), 1, "malformed run lengths"},
		"run of 2^62":              {append(uvarints(1<<63), 1), 1, "malformed run lengths"},
		"run longer than the page": {append(uvarints(1000<<1), 1), 1, "malformed run lengths"},
		"run without value":        {uvarints(8 << 1), 1, "malformed run lengths"},
		"bits without end":         {append(uvarints(1<<1|1), 1), 20, "malformed run lengths"},
		"width of 33":              {append(uvarints(8<<1), 1, 1, 1, 1, 1), 33, "malformed run lengths"},
		"too few":                  {append(uvarints(7<<1), 1), 1, "7 values in a page of 8"},
		"nothing":                  {nil, 1, "0 values in a page of 8"},
	} {
		if err := checkRuns(c.src, c.width, 8); err == nil || err.Error() != c.want {
			t.Errorf("runs, %s: %v, want %s", name, err, c.want)
		}
	}
	for name, c := range map[string]struct {
		src  []byte
		want string
	}{
		"nothing":             {nil, "malformed deltas"},
		"count of 2^31":       {uvarints(128, 4, 1<<31, 0), "2147483648 values in a page of 8"},
		"block of 0":          {uvarints(0, 4, 8, 0), "malformed deltas"},
		"block of 2^40":       {uvarints(1<<40, 4, 8, 0), "malformed deltas"},
		"no miniblocks":       {uvarints(128, 0, 8, 0), "malformed deltas"},
		"too many miniblocks": {uvarints(128, 8, 8, 0), "malformed deltas"},
		"no block":            {uvarints(128, 4, 8, 0), "malformed deltas"},
		"no widths":           {uvarints(128, 4, 8, 0, 0), "malformed deltas"},
		"width of 65":         {append(uvarints(128, 4, 8, 0, 0), append([]byte{65, 0, 0, 0}, make([]byte, 400)...)...), "malformed deltas"},
		"miniblock cut":       {append(uvarints(128, 4, 8, 0, 0), 8, 0, 0, 0, 1, 2, 3), "malformed deltas"},
	} {
		if _, err := checkDelta(c.src, 8, 64); err == nil || err.Error() != c.want {
			t.Errorf("deltas, %s: %v, want %s", name, err, c.want)
		}
	}
}

func TestLevels(t *testing.T) {
	page := func(levels ...byte) []byte {
		return append(append(binary.LittleEndian.AppendUint32(nil, uint32(len(levels))), levels...), "values"...)
	}
	for name, c := range map[string]struct {
		page []byte
		want string
	}{
		"run of ones":       {page(10<<1, 1), ""},
		"bits":              {page(2<<1|1, 0xff, 3), ""},
		"both":              {page(4<<1, 1, 1<<1|1, 0x3f), ""},
		"run of zeros":      {page(10<<1, 0), "has nulls"},
		"a zero among bits": {page(2<<1|1, 0xff, 2), "has nulls"},
		"too few":           {page(9<<1, 1), "9 values in a page of 10"},
		"beyond the page":   {[]byte{9, 0, 0, 0, 1}, "malformed run lengths"},
		"shorter than four": {[]byte{9}, "malformed run lengths"},
	} {
		rest, err := cutLevels(c.page, 10)
		if got := message(err); got != c.want || err == nil && string(rest) != "values" {
			t.Errorf("%s: %q with %q left, want %q", name, got, rest, c.want)
		}
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
