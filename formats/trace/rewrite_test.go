package trace_test

import (
	"testing"

	"gm/formats/column/columntest"
)

func rewrite(t *testing.T, file []byte) []byte {
	t.Helper()
	out, err := columntest.Plain(file)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
