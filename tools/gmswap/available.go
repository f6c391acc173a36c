package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// availableMemory returns the bytes of host memory that programs may still take: of the machine, or of this process's cgroup if that is less.
func availableMemory() (int64, error) {
	machine, err := meminfo("/proc/meminfo", "MemAvailable")
	if err != nil {
		return 0, err
	}
	limit, errLimit := number("/sys/fs/cgroup/memory.max")
	used, errUsed := number("/sys/fs/cgroup/memory.current")
	if errLimit == nil && errUsed == nil {
		machine = min(machine, max(0, limit-used))
	}
	return machine, nil
}

// meminfo returns a row of /proc/meminfo, in bytes.
func meminfo(file, row string) (int64, error) {
	f, err := os.Open(file)
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
func number(file string) (int64, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
}
