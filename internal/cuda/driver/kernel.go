package driver

import (
	"os"
	"strings"
)

// KernelVersion returns the version of the kernel driver, such as 580.159.03, or "" if it cannot be read here.
func KernelVersion() string {
	text, err := os.ReadFile("/sys/module/nvidia/version")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
