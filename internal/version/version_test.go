package version

import (
	"os"
	"regexp"
	"testing"
)

// TestShared compares the version with that of the header, which C programs see, and with the newest of the change log.
func TestShared(t *testing.T) {
	for file, expression := range map[string]string{
		"../libgm/gm.h":      `(?m)^#define GM_VERSION "(.*)"$`,
		"../../CHANGELOG.md": `(?m)^## \[(.*?)\]`,
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if m := regexp.MustCompile(expression).FindSubmatch(text); m == nil || string(m[1]) != Number {
			t.Errorf("%s has %q, the version is %s", file, m, Number)
		}
	}
}
