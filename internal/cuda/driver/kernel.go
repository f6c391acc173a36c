package driver

import (
	"os"
	"strings"
)

// KernelVersion returns the version of the driver in the kernel, such as 580.159.03, or nothing where it is not to be seen from here.
func KernelVersion() string {
	text, err := os.ReadFile("/sys/module/nvidia/version")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
