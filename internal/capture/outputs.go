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

// identity is what names a process's output.
type identity struct {
	host                       string
	pid                        int
	rank, localRank, worldSize int // -1 unknown
	startNS                    int64
}

// order sorts identities: by rank, those without one last, then by start.
func order(a, b identity) int {
	rank := func(i identity) uint { return uint(i.rank) } // -1 is the largest
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.startNS, b.startNS))
}

// CheckPattern says what is wrong with the name of an output.
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

// CheckOutput says why files of a name could not be written, before there is anything to write: where there is no permission, or a
// file is in the place of a folder.
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
	if i := strings.IndexByte(folder, '%'); i >= 0 { // it is known later
		folder = filepath.Dir(folder[:i] + "x")
	}
	for {
		info, err := os.Stat(folder)
		switch {
		case err == nil && !info.IsDir():
			return fmt.Errorf("write %s: %s is no folder", pattern, folder)
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

// isFolder tells whether a pattern is that of a dataset: a folder, or a name that ends in a slash.
func isFolder(pattern string) bool {
	if strings.HasSuffix(pattern, "/") {
		return true
	}
	info, err := os.Stat(pattern)
	return err == nil && info.IsDir()
}

// outputNames returns where the trace of each process goes, in the order of ids, no two to the same place. "" is standard output.
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

// expand fills a pattern in.
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

// distinguish puts the rank and the pid of a process into a name, and from the second on which of several programs of that pid it is.
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
	if ext == filepath.Base(name) { // .name, all of which is the name
		ext = ""
	}
	return strings.TrimSuffix(name, ext) + text + ext
}
