package picture

import (
	"slices"
	"testing"

	"gm/internal/trace/tags"
)

// TestColors: derived tags have their colours whoever is beside them, and others take what is left.
func TestColors(t *testing.T) {
	for _, test := range []struct {
		names []string
		want  []int
	}{
		{[]string{tags.Parameters, tags.Gradients}, []int{0, 2}},
		{[]string{tags.Parameters + " (guess)", tags.Activations, tags.Activations + " (guess)"}, []int{0, 5, 5}},
		{[]string{"mine", tags.Parameters, "yours"}, []int{1, 0, 2}},
	} {
		if got := colors(test.names); !slices.Equal(got, test.want) {
			t.Errorf("%v: %v, want %v", test.names, got, test.want)
		}
	}
}
