package atomicfile

import (
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	prefix = ".gm-" // of temporary files
	// sweepAge is the least age of a file that is removed: by then a living process has locked it.
	sweepAge = time.Hour
	// sweepMost bounds the names of a folder that are examined.
	sweepMost = 1 << 14
	zfs       = 0x2fc12fc1 // ZFS_SUPER_MAGIC
)

// sweep removes temporary files that killed processes of this user left in a folder. A living process holds a lock on its file, which is
// visible also in other containers. On a file system shared by several hosts a lock may be visible on its own host only, so nothing is
// removed there.
func sweep(folder string) {
	dir, err := os.Open(folder)
	if err != nil {
		return
	}
	defer dir.Close()
	if !oneHost(dir) {
		return
	}
	names, _ := dir.Readdirnames(sweepMost)
	for _, name := range names {
		if ours(name) && left(folder+name) {
			os.Remove(folder + name)
		}
	}
}

// oneHost reports whether a folder is on a file system that only this host can write to.
func oneHost(dir *os.File) bool {
	var stat unix.Statfs_t
	if unix.Fstatfs(int(dir.Fd()), &stat) != nil {
		return false
	}
	switch stat.Type {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, zfs, unix.TMPFS_MAGIC, unix.RAMFS_MAGIC,
		unix.OVERLAYFS_SUPER_MAGIC:
		return true
	}
	return false
}

// ours reports whether a name is one that makeBeside makes.
func ours(name string) bool {
	rest, ok := strings.CutPrefix(name, prefix)
	pid, nanoseconds, cut := strings.Cut(rest, "-")
	return ok && cut && number(pid) && number(nanoseconds) && len(nanoseconds) == len("1700000000000000000")
}

func number(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }

// left reports whether a process of this user left a file behind.
func left(name string) bool {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
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
