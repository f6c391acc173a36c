package gtbm

import "testing"

func TestTrials(t *testing.T) {
	for _, test := range []struct {
		needs []int64
		beta  int64
		want  int
	}{
		{nil, 10, 0},
		{[]int64{100, 100, 90, 110}, 10, 0},
		{[]int64{100, 111, 111, 120}, 10, 1},
		{[]int64{100, 121, 131, 90}, 10, 3},
		{[]int64{100, 150}, 10, 4},
		{[]int64{100, 150}, 50, 0},
	} {
		if got := Trials(test.needs, test.beta); got != test.want {
			t.Errorf("%v with %d bytes: %d failures, want %d", test.needs, test.beta, got, test.want)
		}
	}
}
