package capture

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// identity is what the name of a process's output is made from.
type identity struct {
	host                       string
	pid                        int
	rank, localRank, worldSize int // -1 if unknown
	startNS                    int64
}

// order compares identities: by rank, unknown ranks last, then by start.
func order(a, b identity) int {
	rank := func(i identity) uint { return uint(i.rank) } // -1 is the largest
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.startNS, b.startNS))
}

// CheckPattern returns an error if a pattern for names of outputs is malformed.
func CheckPattern(pattern string) error {
	for rest := pattern; ; {
		i := strings.IndexByte(rest, '%')
		if i < 0 {
			return nil
		}
		if i+1 == len(rest) || !strings.ContainsRune("rlwph%", rune(rest[i+1])) {
			return fmt.Errorf("%s: what follows %% is one of r (rank), l (local rank), w (world size), p (pid), h (host) and %%", pattern)
		}
		rest = rest[i+2:]
	}
}

// CheckOutput returns an error if files named by a pattern could not be written: for want of permission, or because a file stands where a
// folder is needed. It is called before the command runs.
func CheckOutput(pattern string) error {
	if pattern == "" || pattern == "-" {
		return nil
	}
	if info, err := os.Stat(pattern); err == nil && !info.IsDir() && !info.Mode().IsRegular() {
		return access(pattern, unix.W_OK) // such as /dev/null
	}
	folder := filepath.Dir(pattern)
	if isFolder(pattern) {
		folder = filepath.Clean(pattern)
	}
	if i := strings.IndexByte(folder, '%'); i >= 0 { // the rest of the path is known only at the end
		folder = filepath.Dir(folder[:i] + "x")
	}
	for {
		info, err := os.Stat(folder)
		switch {
		case err == nil && !info.IsDir():
			return fmt.Errorf("write %s: %s is not a folder", pattern, folder)
		case err == nil:
			if err := access(folder, unix.W_OK|unix.X_OK); err != nil {
				return fmt.Errorf("write %s: folder %w", pattern, err)
			}
			return nil
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR):
			return fmt.Errorf("write %s: %w", pattern, err)
		case folder == filepath.Dir(folder):
			return nil
		}
		folder = filepath.Dir(folder)
	}
}

func access(name string, how uint32) error {
	if err := unix.Access(name, how); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// isFolder reports whether a pattern names a dataset: a folder, or a name that ends in a slash.
func isFolder(pattern string) bool {
	if strings.HasSuffix(pattern, "/") {
		return true
	}
	info, err := os.Stat(pattern)
	return err == nil && info.IsDir()
}

// outputNames returns the name of each process's trace, in the order of ids. All are distinct; "" is standard output.
func outputNames(pattern string, ids []identity) []string {
	names := make([]string, len(ids))
	taken := map[string]bool{}
	sorted := make([]int, len(ids))
	for i := range ids {
		sorted[i] = i
	}
	slices.SortStableFunc(sorted, func(a, b int) int { return order(ids[a], ids[b]) })
	for _, i := range sorted {
		name := expand(pattern, ids[i])
		for n := 1; taken[name]; n++ {
			name = distinguish(cmp.Or(expand(pattern, ids[i]), "gmtrace.parquet"), ids[i], n)
		}
		taken[name] = true
		names[i] = name
	}
	return names
}

// expand replaces the verbs of a pattern.
func expand(pattern string, id identity) string {
	switch {
	case pattern == "" || pattern == "-":
		return ""
	case isFolder(pattern):
		return filepath.Join(pattern, "host="+id.host, fmt.Sprintf("rank=%d", id.rank), fmt.Sprintf("pid=%d", id.pid), "trace.parquet")
	}
	return strings.NewReplacer(
		"%%", "%", "%r", strconv.Itoa(max(id.rank, 0)), "%l", strconv.Itoa(max(id.localRank, 0)),
		"%w", strconv.Itoa(max(id.worldSize, 1)), "%p", strconv.Itoa(id.pid), "%h", id.host,
	).Replace(pattern)
}

// distinguish inserts the rank and the PID of a process into a name and, from the second program of that PID on, the program's number.
func distinguish(name string, id identity, program int) string {
	text := fmt.Sprintf("-p%d", id.pid)
	if id.rank >= 0 {
		text = fmt.Sprintf("-r%d", id.rank) + text
	}
	if program > 1 {
		text += fmt.Sprintf("-%d", program)
	}
	return insert(name, text)
}

// insert puts text before the extension of a name.
func insert(name, text string) string {
	ext := filepath.Ext(name)
	if ext == filepath.Base(name) { // a name such as .trace has no extension
		ext = ""
	}
	return strings.TrimSuffix(name, ext) + text + ext
}
