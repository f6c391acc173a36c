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

// TestWhereTracesAre names a trace by its absolute and by its relative path, and a folder of ranks.
func TestWhereTracesAre(t *testing.T) {
	testdata, err := filepath.Abs("../../../testdata")
	if err != nil {
		t.Fatal(err)
	}
	dir, ranks := t.TempDir(), filepath.Join(testdata, "ranks")
	if err := os.Symlink(filepath.Join(ranks, "host=node0/rank=0/pid=1/trace.parquet"), filepath.Join(dir, "one.parquet")); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "s.json")
	spec := `{"traces": ["one.parquet", "` + filepath.Join(dir, "one.parquet") + `", "` + ranks + `"], "allocators": ["torch"]}`
	if err := os.WriteFile(name, []byte(spec), 0o666); err != nil {
		t.Fatal(err)
	}
	tasks, err := Read(name)
	if err != nil {
		t.Fatal(err)
	}
	for i := range tasks {
		if _, err := tasks[i].Run(context.Background(), dir); err != nil {
			t.Fatal(err)
		}
	}
	all, err := Merge(tasks, dir)
	if err != nil {
		t.Fatal(err)
	}
	one, of := all[0].Rows[0], all[2].Rows
	if one.Trace != "one.parquet" || all[1].Rows[0].PeakReserved != one.PeakReserved {
		t.Errorf("by a relative path %+v, by an absolute one %+v", one, all[1].Rows)
	}
	if len(of) != 4 || of[0].PeakReserved != one.PeakReserved || of[2].PeakReserved <= one.PeakReserved || of[2].Trace != filepath.Join(ranks, "host=node0/rank=2/pid=3/trace.parquet") {
		t.Errorf("of ranks: %+v", of)
	}
}

// TestPartOfRanks has a folder in which a rank is missing.
func TestPartOfRanks(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "job/rank=0"), os.DirFS("../../../testdata/ranks/host=node0/rank=0")); err != nil {
		t.Fatal(err)
	}
	task := Task{Trace: "job", Allocator: "torch", folder: dir}
	if _, err := task.Run(context.Background(), dir); err == nil || !strings.Contains(err.Error(), "3 of 4 ranks missing") {
		t.Errorf("%v, want an error that says what is missing", err)
	}
}

// TestDamagedResults has results that are cut short: those tasks are run again, and merging says so.
func TestDamagedResults(t *testing.T) {
	tasks, dir := mustRead(t, `{"synth": [{"job": "opt-1.3b,layers=2,batch=2,seq=64"}], "allocators": ["torch", "expandable"]}`), t.TempDir()
	for i, text := range []string{"", `{"task": {"allo`} {
		name, err := tasks[i].file(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Merge(tasks, dir); err == nil || !strings.Contains(err.Error(), "2 of 2 tasks have no result in") {
		t.Errorf("merged: %v", err)
	}
	for i := range tasks {
		if ran, err := tasks[i].Run(context.Background(), dir); err != nil || !ran {
			t.Errorf("task %d: ran %v, %v", i, ran, err)
		}
	}
	if all, err := Merge(tasks, dir); err != nil || len(all) != 2 {
		t.Errorf("%d results: %v", len(all), err)
	}
}

func TestBadMatrices(t *testing.T) {
	for text, want := range map[string]string{
		`{"synth": [{"job": "opt-1.3b"}], "allocators": ["torch"], "capacitys": ["1GiB"]}`:     `unknown field "capacitys"`,
		`{"synth": [{"job": "opt-1.3b"}], "allocators": ["torch"]} {}`:                         "text behind the matrix",
		`{"synth": [{"job": "opt-1.3"}], "allocators": ["torch"]}`:                             `synth: model "opt-1.3"`,
		`{"synth": [{"job": "opt-1.3b,batch=0"}], "allocators": ["torch"]}`:                    "synth: ",
		`{"synth": [{"job": "opt-1.3b", "strategy": "Q"}], "allocators": ["torch"]}`:           "synth: job opt-1.3b: ",
		`{"synth": [{"job": "opt-1.3b", "steps": -1}], "allocators": ["torch"]}`:               "-1 steps",
		`{"traces": ["absent.parquet"], "allocators": ["torch"]}`:                              "absent.parquet: no such file",
		`{"synth": [{"job": "opt-1.3b"}], "allocators": ["torch"], "capacities": ["1 apple"]}`: "capacities: ",
	} {
		name := filepath.Join(t.TempDir(), "sweep.json")
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if tasks, err := Read(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %d tasks, %v, want an error with %q", text, len(tasks), err, want)
		}
	}
}
