package tools

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// indexedJob is what the example has of a Job of batch/v1; a field that is not here is an error.
type indexedJob struct {
	APIVersion string `json:"apiVersion"`
	Kind       string
	Metadata   struct{ Name string }
	Spec       struct {
		CompletionMode                         string `json:"completionMode"`
		Completions, Parallelism, BackoffLimit int
		Template                               struct {
			Spec struct {
				RestartPolicy string `json:"restartPolicy"`
				Containers    []struct {
					Name, Image, WorkingDir string
					Command                 []string
					Resources               struct{ Requests map[string]string }
					VolumeMounts            []struct{ Name, MountPath string }
				}
				Volumes []struct {
					Name                  string
					PersistentVolumeClaim struct{ ClaimName string }
				}
			}
		}
	}
}

// TestKubernetes runs the command of the example once for each index, as a Job would, and merges.
func TestKubernetes(t *testing.T) {
	text, err := os.ReadFile("../docs/examples/kubernetes-sweep.json")
	if err != nil {
		t.Fatal(err)
	}
	var job indexedJob
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&job); err != nil {
		t.Fatal(err)
	}
	pod := job.Spec.Template.Spec
	if job.APIVersion != "batch/v1" || job.Kind != "Job" || job.Spec.CompletionMode != "Indexed" || pod.RestartPolicy != "OnFailure" || len(pod.Containers) != 1 {
		t.Fatalf("%+v", job)
	}
	c := pod.Containers[0]
	if len(c.VolumeMounts) != 1 || len(pod.Volumes) != 1 || c.VolumeMounts[0].Name != pod.Volumes[0].Name || c.VolumeMounts[0].MountPath != c.WorkingDir {
		t.Errorf("volumes %+v, mounted %+v, working in %s", pod.Volumes, c.VolumeMounts, c.WorkingDir)
	}
	dir := t.TempDir()
	matrix, err := os.ReadFile("../docs/examples/sweep.json")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "sweep.json"), matrix, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	in := func(words ...string) *exec.Cmd {
		cmd := exec.Command(words[0], words[1:]...)
		cmd.Dir = dir
		return cmd
	}
	if n := len(strings.Fields(string(mustRun(t, in("gmbench", "sweep", "sweep.json", "-d", "results", "--list"))))); n != job.Spec.Completions {
		t.Fatalf("%d completions for %d tasks", job.Spec.Completions, n)
	}
	for i := range job.Spec.Completions {
		var words []string
		for _, word := range c.Command {
			words = append(words, strings.ReplaceAll(word, "$(JOB_COMPLETION_INDEX)", strconv.Itoa(i)))
		}
		mustRun(t, in(words...))
	}
	mustRun(t, in("gmbench", "sweep", "sweep.json", "-d", "alone"))
	if got, want := mustRun(t, in("gmbench", "merge", "sweep.json", "-d", "results")), mustRun(t, in("gmbench", "merge", "sweep.json", "-d", "alone")); !bytes.Equal(got, want) {
		t.Errorf("merged:\n%s\nwant:\n%s", got, want)
	}
}
