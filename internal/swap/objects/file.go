package objects

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"gm/internal/unnamed"
)

// file holds the contents of blocks in holes of a sparse file without a name, which ends with the process.
type file struct {
	f     *os.File
	end   int64
	live  int64             // bytes
	holes map[int64][]int64 // that are free, by size
}

// openFile makes a file in a folder.
func openFile(folder string) (*file, error) {
	f, err := unnamed.Open(folder)
	if err != nil {
		return nil, fmt.Errorf("make a file for objects: %w", err)
	}
	return &file{f: f, holes: map[int64][]int64{}}, nil
}

// write returns where contents are from now on.
func (x *file) write(contents []byte) (hole int64, err error) {
	n := int64(len(contents))
	hole = x.end
	of := x.holes[n]
	if len(of) > 0 {
		hole = of[len(of)-1]
	}
	if _, err := x.f.WriteAt(contents, hole); err != nil {
		return 0, fmt.Errorf("write %d bytes to the file for objects: %w", n, err)
	}
	if len(of) > 0 {
		x.holes[n] = of[:len(of)-1]
	} else {
		x.end += n
	}
	x.live += n
	return hole, nil
}

func (x *file) read(to []byte, hole int64) error {
	if _, err := io.ReadFull(io.NewSectionReader(x.f, hole, int64(len(to))), to); err != nil {
		return fmt.Errorf("read %d bytes from the file for objects: %w", len(to), err)
	}
	return nil
}

// drop gives the disk back what a hole takes.
func (x *file) drop(hole, size int64) error {
	x.live -= size
	if x.live == 0 {
		x.end = 0
		clear(x.holes)
		return x.f.Truncate(0)
	}
	x.holes[size] = append(x.holes[size], hole)
	// A file system without holes keeps the disk's blocks for the next contents of this size.
	_ = unix.Fallocate(int(x.f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, hole, size)
	return nil
}

func (x *file) close() error {
	if x == nil {
		return nil
	}
	return x.f.Close()
}
