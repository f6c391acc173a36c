package sweep

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

const matrix = `{"synth": [{"job": "opt-1.3b,layers=2,batch=2,seq=64..256", "strategy": "LR", "steps": 3}, {"job": "llama-7b,layers=2,seq=128,batch=1"}],
	"allocators": ["torch", "stitch"], "capacities": ["1GiB", "80GiB"]}`

func mustRead(t *testing.T, text string) []Task {
	t.Helper()
	name := filepath.Join(t.TempDir(), "sweep.json")
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	tasks, err := Read(name)
	if err != nil {
		t.Fatal(err)
	}
	return tasks
}

// TestAnyOrder runs tasks forward in one folder, and backward, each twice and with a part of the results lost, in another: merged they are the same.
func TestAnyOrder(t *testing.T) {
	tasks := mustRead(t, matrix)
	if len(tasks) != 8 {
		t.Fatalf("%d tasks", len(tasks))
	}
	ctx, forward, backward := context.Background(), t.TempDir(), t.TempDir()
	run := func(dir string, i int, want bool) {
		t.Helper()
		if ran, err := tasks[i].Run(ctx, dir); err != nil || ran != want {
			t.Errorf("task %d: ran %v, want %v; %v", i, ran, want, err)
		}
	}
	for i := range tasks {
		run(forward, i, true)
		run(backward, len(tasks)-1-i, true)
		run(backward, len(tasks)-1-i, false)
	}
	for _, i := range []int{2, 5} {
		name, err := tasks[i].file(backward)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Merge(tasks, backward); err == nil || !strings.Contains(err.Error(), "2 of 8 tasks have no result in") {
		t.Errorf("merged without two results: %v", err)
	}
	for i := range tasks {
		run(backward, i, i == 2 || i == 5)
	}
	a, err := Merge(tasks, forward)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Merge(tasks, backward)
	if err != nil || !reflect.DeepEqual(a, b) {
		t.Errorf("merged:\n%+v\n%+v\n%v", a, b, err)
	}
	if a[0].Rows[0].PeakReserved == 0 || a[0].Rows[0].Allocator != "torch" {
		t.Errorf("first row %+v", a[0].Rows[0])
	}
}

// TestContents checks that a result is of what is in a trace, not of its name.
func TestContents(t *testing.T) {
	dir := t.TempDir()
	task := Task{Trace: "t", Allocator: "torch", folder: dir}
	var names []string
	for _, text := range []string{"a", "b", "a"} {
		if err := os.WriteFile(filepath.Join(dir, "t"), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		name, err := task.file(dir)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	if names[0] == names[1] || names[0] != names[2] {
		t.Errorf("files %q", names)
	}
}
