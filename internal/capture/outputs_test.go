package capture

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestOutputNames(t *testing.T) {
	one := []identity{{host: "h", pid: 7, rank: -1}}
	ranks := []identity{{host: "h", pid: 8, rank: 1, worldSize: 2}, {host: "h", pid: 7, rank: 0, worldSize: 2}}
	same := []identity{{host: "h", pid: 7, rank: -1, startNS: 2}, {host: "h", pid: 8, rank: -1, startNS: 1}, {host: "h", pid: 7, rank: -1, startNS: 3}}
	for _, c := range []struct {
		pattern string
		ids     []identity
		want    []string
	}{
		{"", one, []string{""}},
		{"-", ranks, []string{"gmtrace-r1-p8.parquet", ""}},
		{"a.parquet", one, []string{"a.parquet"}},
		{"a.parquet", ranks, []string{"a-r1-p8.parquet", "a.parquet"}},
		{"a.parquet", same, []string{"a-p7.parquet", "a.parquet", "a-p7-2.parquet"}},
		{"job-%r.parquet", ranks, []string{"job-1.parquet", "job-0.parquet"}},
		{"%h/%p-%w-100%%", ranks, []string{"h/8-2-100%", "h/7-2-100%"}},
		{"d/", ranks, []string{"d/host=h/rank=1/pid=8/trace.parquet", "d/host=h/rank=0/pid=7/trace.parquet"}},
		{"d/", same, []string{"d/host=h/rank=-1/pid=7/trace.parquet", "d/host=h/rank=-1/pid=8/trace.parquet", "d/host=h/rank=-1/pid=7/trace-p7.parquet"}},
	} {
		if got := outputNames(c.pattern, c.ids); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.pattern, got, c.want)
		}
	}
}

func TestCheckPattern(t *testing.T) {
	for pattern, ok := range map[string]bool{"": true, "a-%r-%l-%w-%p-%h-%%.parquet": true, "a%": false, "a%d": false, "%": false} {
		if err := CheckPattern(pattern); (err == nil) != ok {
			t.Errorf("%q: %v", pattern, err)
		}
	}
}

func TestCheckOutput(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for pattern, want := range map[string]bool{
		"": true, "-": true, "x.parquet": true, "/dev/null": true, folder: true, folder + "/": true, file: true,
		folder + "/new/%r/x": true, folder + "/%h-%p": true,
		file + "/x": false, file + "/": false, file + "/%r/x": false, file + "/new/x": false,
	} {
		if err := CheckOutput(pattern); err == nil != want {
			t.Errorf("%q: %v", pattern, err)
		}
	}
}
