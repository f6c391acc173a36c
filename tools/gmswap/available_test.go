package main

import (
	"testing"
	"testing/fstest"
)

func TestAvailableMemory(t *testing.T) {
	const gib = 1 << 30
	files := func(pairs ...string) fstest.MapFS {
		all := fstest.MapFS{"proc/meminfo": {Data: []byte("MemTotal:  16777216 kB\nMemAvailable:   8388608 kB\n")}}
		for i := 0; i < len(pairs); i += 2 {
			all[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1] + "\n")}
		}
		return all
	}
	for name, test := range map[string]struct {
		files fstest.MapFS
		want  int64
	}{
		"no cgroups":        {files(), 8 * gib},
		"no limit":          {files("proc/self/cgroup", "0::/", "sys/fs/cgroup/memory.current", "9"), 8 * gib},
		"more than is free": {files("proc/self/cgroup", "0::/", "sys/fs/cgroup/memory.max", "17179869184", "sys/fs/cgroup/memory.current", "0"), 8 * gib},
		"of a container":    {files("proc/self/cgroup", "0::/", "sys/fs/cgroup/memory.max", "4294967296", "sys/fs/cgroup/memory.current", "1073741824"), 3 * gib},
		"its own": {files("proc/self/cgroup", "0::/user.slice/job", "sys/fs/cgroup/user.slice/job/memory.max", "2147483648",
			"sys/fs/cgroup/user.slice/job/memory.current", "1073741824"), gib},
		"of one that it is in": {files("proc/self/cgroup", "0::/user.slice/job/step", "sys/fs/cgroup/user.slice/job/step/memory.max", "max",
			"sys/fs/cgroup/user.slice/job/step/memory.current", "5", "sys/fs/cgroup/user.slice/memory.max", "3221225472",
			"sys/fs/cgroup/user.slice/memory.current", "1073741824"), 2 * gib},
		"used up": {files("proc/self/cgroup", "0::/a", "sys/fs/cgroup/a/memory.max", "1", "sys/fs/cgroup/a/memory.current", "2"), 0},
		"version 1": {files("proc/self/cgroup", "7:cpu,cpuacct:/x\n5:memory:/slurm/job", "sys/fs/cgroup/memory/slurm/job/memory.limit_in_bytes", "3221225472",
			"sys/fs/cgroup/memory/slurm/job/memory.usage_in_bytes", "1073741824", "sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712",
			"sys/fs/cgroup/memory/memory.usage_in_bytes", "1"), 2 * gib},
		"version 1 within a container": {files("proc/self/cgroup", "5:memory:/docker/0123", "sys/fs/cgroup/memory/memory.limit_in_bytes", "1073741824",
			"sys/fs/cgroup/memory/memory.usage_in_bytes", "0"), gib},
		"both versions": {files("proc/self/cgroup", "0::/a\n5:memory:/a", "sys/fs/cgroup/unified/a/memory.max", "max",
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1073741824", "sys/fs/cgroup/memory/a/memory.usage_in_bytes", "0"), gib},
		"outside of its own": {files("proc/self/cgroup", "0::/../other", "sys/fs/cgroup/memory.max", "1073741824", "sys/fs/cgroup/memory.current", "0"), gib},
	} {
		if got, err := availableMemory(test.files); err != nil || got != test.want {
			t.Errorf("%s: %d, %v, want %d", name, got, err, test.want)
		}
	}
	if got, err := availableMemory(fstest.MapFS{}); err == nil {
		t.Errorf("with no files: %d", got)
	}
}
