package units

import "testing"

func TestCount(t *testing.T) {
	for _, c := range []struct {
		n    int
		what string
		want string
	}{
		{0, "file", "no files"}, {1, "file", "1 file"}, {2, "file", "2 files"}, {1, "retry", "1 retry"}, {3, "retry", "3 retries"},
		{2, "microbatch", "2 microbatches"}, {2, "process", "2 processes"}, {5, "more request", "5 more requests"},
	} {
		if got := Count(c.n, c.what); got != c.want {
			t.Errorf("Count(%d, %q) = %q, want %q", c.n, c.what, got, c.want)
		}
	}
	if got := Times(0) + ", " + Times(1) + ", " + Times(2); got != "0 times, once, 2 times" {
		t.Error(got)
	}
}
