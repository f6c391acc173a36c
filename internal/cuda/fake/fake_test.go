package fake

import "testing"

func TestBuild(t *testing.T) {
	if _, err := Build(t.TempDir(), "-Werror"); err != nil {
		t.Fatal(err)
	}
}
