package capture

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"gm/formats/trace"
	"gm/internal/torch/snapshot"
)

// meanwhile is a reader that calls do before each read.
type meanwhile struct {
	io.Reader
	do func()
}

func (m meanwhile) Read(into []byte) (int, error) {
	m.do()
	return m.Reader.Read(into)
}

// takeDump reads the next dump of PyTorch's history. It returns false if the dump must be tried again later. A dump that cannot be read
// ends the history.
func (p *process) takeDump(file string) bool {
	f, err := openRegular(file)
	if errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) {
		return false // tried again when other files are closed
	}
	delete(p.dumps, p.nextDump)
	p.nextDump++
	if err != nil {
		if p.failed == nil && !errors.Is(err, fs.ErrNotExist) {
			p.endHistory(err)
		}
		return true
	}
	defer f.Close()
	if p.failed == nil {
		p.addDump(f)
	}
	if p.failed != nil {
		_ = os.Remove(file) // the dump before it stays, which is of more use
	} else {
		p.keepDump(f)
	}
	return true
}

func (p *process) addDump(f *os.File) {
	first := p.history == nil
	if first {
		p.history = snapshot.NewJoin(p.texts)
	}
	entries := map[int32]int{}
	p.history.Fresh = func(e trace.Event) {
		entries[e.Device]++
		p.live.framework.Add(e)
	}
	if err := p.history.Add(bufio.NewReaderSize(meanwhile{f, p.drain}, 1<<20), filepath.Base(f.Name())); err != nil {
		p.endHistory(err)
	}
	for _, n := range entries {
		p.headless = p.headless || first && n >= p.greeting.Ring && p.greeting.Ring > 0
	}
}

func (p *process) endHistory(err error) {
	p.failed, p.broken = err, true
	p.lack("PyTorch's tensors are recorded up to a dump that cannot be read: %v", err)
}

// takenName returns the file of the last dump that was read. If this process is killed, Recover makes a trace from it of what lived then.
func takenName(folder string, pid int) string {
	return filepath.Join(folder, fmt.Sprintf("taken.%d.pickle", pid))
}

// keepDump replaces the kept dump by this one if the disk has room for several more, and otherwise removes both.
func (p *process) keepDump(f *os.File) {
	const roomFor = 4
	var disk unix.Statfs_t
	info, err := f.Stat()
	if err == nil && unix.Fstatfs(int(f.Fd()), &disk) == nil && info.Size() <= int64(disk.Bavail)*disk.Bsize/roomFor &&
		os.Rename(f.Name(), takenName(p.folder, p.pid)) == nil {
		return
	}
	_ = os.Remove(f.Name())
	_ = os.Remove(takenName(p.folder, p.pid))
}

const (
	// maxMarks bounds the marks of a process, maxMark the bytes of one mark's text.
	maxMarks = 1 << 22
	maxMark  = 256
)

// marks reads the step marks that the Python hook wrote.
func (p *process) marks() ([]mark, error) {
	f, err := openRegular(filepath.Join(p.folder, "marks."+strconv.Itoa(p.pid)))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("read marks: %w", err)
	}
	defer f.Close()
	var marks []mark
	texts := map[string]string{} // shared: most marks have the same text
	for lines := bufio.NewScanner(f); lines.Scan() && len(marks) < maxMarks; {
		at, text, ok := strings.Cut(lines.Text(), " ")
		ns, err := strconv.ParseInt(at, 10, 64)
		if !ok || err != nil || len(text) > maxMark {
			break // cut short
		}
		if n := len(marks); n > 0 {
			ns = max(ns, marks[n-1].timeNS)
		}
		if known, ok := texts[text]; ok {
			text = known
		} else if len(texts) < 1000 {
			texts[strings.Clone(text)] = strings.Clone(text)
		}
		marks = append(marks, mark{max(ns, 0), text})
	}
	return marks, nil
}
