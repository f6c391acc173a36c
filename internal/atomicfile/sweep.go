package atomicfile

import (
	"os"
	"strings"
	"syscall"
	"time"
)

const (
	prefix = ".gm-" // of files that are not whole
	// sweepAge is how old a file must be for it to be one that was left: by then its process has locked it.
	sweepAge = time.Hour
	// sweepMost is how many names of a folder are looked at.
	sweepMost = 1 << 14
)

// sweep removes those files of a folder that processes of this user left there, which were killed. A process holds a lock on its file,
// which others see also from another container.
func sweep(folder string) {
	dir, err := os.Open(folder)
	if err != nil {
		return
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(sweepMost)
	for _, name := range names {
		if ours(name) && left(folder+name) {
			os.Remove(folder + name)
		}
	}
}

// ours says whether a name is one that makeBeside gives.
func ours(name string) bool {
	rest, ok := strings.CutPrefix(name, prefix)
	pid, nanoseconds, cut := strings.Cut(rest, "-")
	return ok && cut && number(pid) && number(nanoseconds) && len(nanoseconds) == len("1700000000000000000")
}

func number(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }

// left says whether a file is one that a process of this user left.
func left(name string) bool {
	f, err := os.OpenFile(name, os.O_WRONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0) // a lock over NFS wants to write
	if err != nil {
		return false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || owner(info).uid != os.Geteuid() || time.Since(info.ModTime()) < sweepAge {
		return false
	}
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}
