package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// podSpec is what the Kubernetes file has of pods; a field that is not here is an error.
type podSpec struct {
	RestartPolicy string            `yaml:"restartPolicy"`
	NodeSelector  map[string]string `yaml:"nodeSelector"`
	Tolerations   []map[string]string
	HostPID       bool `yaml:"hostPID"`
	HostNetwork   bool `yaml:"hostNetwork"`
	Containers    []struct {
		Name, Image string
		Command     []string
		Env         []struct {
			Name, Value string
			ValueFrom   struct {
				FieldRef map[string]string `yaml:"fieldRef"`
			} `yaml:"valueFrom"`
		}
		Resources    map[string]map[string]string
		VolumeMounts []struct {
			Name      string
			MountPath string `yaml:"mountPath"`
		} `yaml:"volumeMounts"`
	}
	Volumes []struct {
		Name     string
		HostPath struct{ Path, Type string } `yaml:"hostPath"`
	}
}

type objectName struct {
	Name   string
	Labels map[string]string
}

type daemonSet struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   objectName
	Spec       struct {
		Selector struct {
			MatchLabels map[string]string `yaml:"matchLabels"`
		}
		Template struct {
			Metadata objectName
			Spec     podSpec
		}
	}
}

type pod struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   objectName
	Spec       podSpec
}

// TestKubernetes reads the DaemonSet and its example: both have the socket's folder of the node at the same place, and the pod is told of it.
func TestKubernetes(t *testing.T) {
	file, err := os.Open("kubernetes/gmswap-daemonset.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	d := yaml.NewDecoder(file)
	d.KnownFields(true)
	var set daemonSet
	var example pod
	if err := errors.Join(d.Decode(&set), d.Decode(&example)); err != nil {
		t.Fatal(err)
	}
	if err := d.Decode(&pod{}); err != io.EOF {
		t.Errorf("there is more: %v", err)
	}
	labels := set.Spec.Template.Metadata.Labels
	if set.APIVersion != "apps/v1" || set.Kind != "DaemonSet" || labels["app"] == "" || labels["app"] != set.Spec.Selector.MatchLabels["app"] {
		t.Errorf("%+v", set)
	}
	if example.APIVersion != "v1" || example.Kind != "Pod" {
		t.Errorf("%+v", example)
	}
	server, client := &set.Spec.Template.Spec, &example.Spec
	folder := socketFolder(t, server)
	socket := folder + "/gmswap.sock"
	if !server.HostPID || !strings.Contains(strings.Join(server.Containers[0].Command, " "), "--socket "+socket) {
		t.Errorf("the server is %+v", server)
	}
	if env := client.Containers[0].Env; socketFolder(t, client) != folder || env[0].Name != "GM_SERVER" || env[0].Value != socket {
		t.Errorf("the pod is %+v", client)
	}
}

// socketFolder returns where the only container of a pod has a folder of the node, which has the same name there.
func socketFolder(t *testing.T, p *podSpec) string {
	t.Helper()
	if len(p.Containers) != 1 || len(p.Volumes) != 1 || len(p.Containers[0].VolumeMounts) != 1 {
		t.Fatalf("%+v", p)
	}
	mount, volume := p.Containers[0].VolumeMounts[0], p.Volumes[0]
	if mount.Name != volume.Name || mount.MountPath != volume.HostPath.Path {
		t.Errorf("%+v is mounted as %+v", volume, mount)
	}
	return mount.MountPath
}

// TestSlurm has bash read the scripts, and runs that of tasks, with a card of 1000 MiB.
func TestSlurm(t *testing.T) {
	scripts, err := filepath.Glob("slurm/*.sh")
	if err != nil || len(scripts) != 3 {
		t.Fatal(scripts, err)
	}
	for _, script := range scripts {
		command(t, "bash", "-n", script)
	}
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "nvidia-smi"), []byte("#!/bin/sh\necho 2000\necho 1000\n"), 0o777); err != nil {
		t.Fatal(err)
	}
	for shards, want := range map[string]string{"": "", "2": "export GM_LIMIT=262144000\n"} {
		cmd := exec.Command("bash", "slurm/task_prolog.sh")
		cmd.Env = []string{"PATH=" + bin + ":/usr/bin:/bin", "SLURM_JOB_ID=7", "SLURM_SHARDS_ON_NODE=" + shards}
		out, err := cmd.CombinedOutput()
		if want := "export GM_SERVER=/run/gmswap/gmswap.sock\nexport GM_NAME=slurm-7\n" + want; err != nil || string(out) != want {
			t.Errorf("with %q shards it prints\n%s%v", shards, out, err)
		}
	}
}

// TestUnit has systemd read the unit, with a tool that is there.
func TestUnit(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("no systemd-analyze")
	}
	text, err := os.ReadFile("gmswap.service")
	if err != nil {
		t.Fatal(err)
	}
	unit := filepath.Join(t.TempDir(), "gmswap.service")
	if err := os.WriteFile(unit, []byte(strings.ReplaceAll(string(text), "/usr/local/bin/gmswap", "/bin/true")), 0o666); err != nil {
		t.Fatal(err)
	}
	if out := command(t, "systemd-analyze", "verify", "--man=no", unit); strings.Contains(out, unit) {
		t.Error(out)
	}
}
