package page

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDiffering(t *testing.T) {
	for _, c := range []struct{ paths, want []string }{
		{[]string{"job/a.parquet", "job/b.parquet"}, []string{"a.parquet", "b.parquet"}},
		{[]string{"a.parquet"}, []string{"a.parquet"}},
		{[]string{"job/host=a/rank=0/pid=7/trace.parquet", "job/host=a/rank=1/pid=8/trace.parquet"}, []string{"rank=0/pid=7", "rank=1/pid=8"}},
		{[]string{"/old/job/trace.parquet", "/new/job/trace.parquet"}, []string{"old", "new"}},
		{[]string{"trace.parquet", "old/trace.parquet"}, []string{"trace.parquet", "old"}},
		{[]string{"a/x.parquet", "b/x.parquet", "a/y.parquet"}, []string{"a/x.parquet", "b/x.parquet", "a/y.parquet"}},
		{[]string{"a/x.parquet", "a/x.parquet"}, []string{"x.parquet", "x.parquet"}},
	} {
		if diff := cmp.Diff(c.want, differing(c.paths)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.paths, diff)
		}
	}
}
