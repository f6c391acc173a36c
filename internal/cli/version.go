package cli

import (
	"fmt"
	"runtime/debug"
	"strings"

	gm "gm/internal/version"
)

// Version returns the text of --version, without the program's name.
func Version() string { return version(buildInfo()) }

// version returns the text of --version for a build: the version of gm, and the commit if that is known.
func version(info *debug.BuildInfo) string {
	revision, modified := setting(info, "vcs.revision"), ""
	if setting(info, "vcs.modified") == "true" {
		modified = ", modified"
	}
	if revision == "" {
		return gm.Number
	}
	return fmt.Sprintf("%s (%.7s%s)", gm.Number, revision, modified)
}

// built returns the day of the commit that was built, as YYYY-MM-DD, "" if it is unknown.
func built(info *debug.BuildInfo) string {
	day, _, _ := strings.Cut(setting(info, "vcs.time"), "T")
	return day
}

func setting(info *debug.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

// buildInfo returns the build information of this program, empty if there is none.
func buildInfo() *debug.BuildInfo {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info
	}
	return &debug.BuildInfo{}
}
