package host

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Node returns the NUMA node that a GPU is on, by its PCI bus id as the driver writes it (0000:1B:00.0), or -1 where the kernel does not
// say.
func Node(busID string) int { return nodeIn("/sys/bus/pci/devices", busID) }

func nodeIn(dir, busID string) int {
	text, err := os.ReadFile(filepath.Join(dir, strings.ToLower(filepath.Base(busID)), "numa_node"))
	if err != nil {
		return -1
	}
	node, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || node < 0 {
		return -1
	}
	return node
}
