package main

import (
	"bufio"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// availableMemory returns the bytes of host memory that programs may still take: of the machine, or of this process's cgroup or one that
// it is in if that is less. Root is the file system.
func availableMemory(root fs.FS) (int64, error) {
	available, err := meminfo(root, "proc/meminfo", "MemAvailable")
	if err != nil {
		return 0, err
	}
	text, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil { // a system without cgroups
		return available, nil
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) < 3 {
			continue
		}
		for _, h := range hierarchies(fields[1]) {
			available = min(available, h.available(root, fields[2], available))
		}
	}
	return available, nil
}

// hierarchy is a tree of cgroups that limit memory.
type hierarchy struct{ mount, limit, used string }

// hierarchies returns the trees in which a line of /proc/self/cgroup with some controllers, none for version 2, may name a cgroup.
func hierarchies(controllers string) []hierarchy {
	if controllers == "" {
		return []hierarchy{{"sys/fs/cgroup", "memory.max", "memory.current"}, {"sys/fs/cgroup/unified", "memory.max", "memory.current"}}
	}
	for _, name := range strings.Split(controllers, ",") {
		if name == "memory" {
			return []hierarchy{{"sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"}}
		}
	}
	return nil
}

// available returns the least that is left to a cgroup and all that it is in, at most this many bytes. Within a container the names of the
// outermost ones may not be found under the mount: those are passed over.
func (h hierarchy) available(root fs.FS, cgroup string, most int64) int64 {
	for at := path.Clean("/" + cgroup); ; at = path.Dir(at) {
		limit, errLimit := number(root, path.Join(h.mount, at, h.limit))
		used, errUsed := number(root, path.Join(h.mount, at, h.used))
		if errLimit == nil && errUsed == nil {
			most = min(most, max(0, limit-used))
		}
		if at == "/" {
			return most
		}
	}
}

// meminfo returns a row of /proc/meminfo, in bytes.
func meminfo(root fs.FS, file, row string) (int64, error) {
	f, err := root.Open(file)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if len(words) == 3 && words[0] == row+":" && words[2] == "kB" {
			kib, err := strconv.ParseInt(words[1], 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("%s has no row %s", file, row)
}

// number returns what a file of a cgroup says; "max" is an error.
func number(root fs.FS, file string) (int64, error) {
	text, err := fs.ReadFile(root, file)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
}
