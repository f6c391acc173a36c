package units

import (
	"fmt"
	"strings"
)

// Times returns how often, such as "0 times", "once" and "3 times".
func Times[N int | int32 | int64](n N) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// Count returns a number of things, such as "no files", "1 entry" and "3 batches". The last word of what is a regular noun in the singular.
func Count[N int | int32 | int64](n N, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if stem, ok := strings.CutSuffix(what, "y"); ok {
		what = stem + "ie"
	}
	if strings.HasSuffix(what, "ch") || strings.HasSuffix(what, "s") {
		what += "e"
	}
	if n == 0 {
		return "no " + what + "s"
	}
	return fmt.Sprintf("%d %ss", n, what)
}
