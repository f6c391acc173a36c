package failuretest

import (
	"testing"

	"gm/internal/trace/failure"
	"gm/internal/trace/importer/tracetest"
	"gm/internal/trace/overview"
)

// Only returns the failure of a trace with one.
func Only(t testing.TB, file []byte) *failure.Failure {
	t.Helper()
	o, err := overview.Read(tracetest.Open(t, file, "x"))
	if err != nil {
		t.Fatal(err)
	}
	all, err := failure.Read(tracetest.Open(t, file, "x"), o)
	if err != nil || len(all) != 1 {
		t.Fatalf("%d failures, %v", len(all), err)
	}
	return all[0]
}
