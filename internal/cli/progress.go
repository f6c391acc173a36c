package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/term"
)

// Line is a status line on standard error for work that takes more than a second, rewritten as the work proceeds. Without a terminal it
// prints nothing.
type Line struct {
	text  func() string
	stop  chan struct{}
	ended chan struct{}
}

// The line first appears after a second, and is then rewritten ten times a second.
const (
	progressDelay = time.Second
	progressTick  = 100 * time.Millisecond
	progressWidth = 40
)

// Line starts a line that shows what text returns. Another goroutine calls text. The caller must call End.
func (c *Context) Line(text func() string) *Line {
	l := newLine(text)
	f, ok := c.Err.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		close(l.ended)
		return l
	}
	go l.run(f, func() int { return columns(f) })
	return l
}

func newLine(text func() string) *Line {
	return &Line{text: text, stop: make(chan struct{}), ended: make(chan struct{})}
}

// columns returns the width of a terminal.
func columns(f *os.File) int {
	if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
		return width
	}
	return 80
}

// End erases the line.
func (l *Line) End() {
	close(l.stop)
	<-l.ended
}

func (l *Line) run(w io.Writer, columns func() int) {
	defer close(l.ended)
	wait := time.NewTimer(progressDelay)
	defer wait.Stop()
	shown := false
	for {
		select {
		case <-l.stop:
			if shown {
				fmt.Fprint(w, "\r\033[K")
			}
			return
		case <-wait.C:
			fmt.Fprintf(w, "\r%s\033[K", cut(l.text(), columns()-1)) // a longer line would wrap, and could not be erased
			shown = true
			wait.Reset(progressTick)
		}
	}
}

// cut returns the first n characters of a text.
func cut(text string, characters int) string {
	if runes := []rune(text); len(runes) > characters {
		return string(runes[:max(characters, 0)])
	}
	return text
}

// Progress is a bar on a [Line].
type Progress struct {
	title string
	total int64
	done  atomic.Int64
	line  *Line // nil if the total is unknown
}

// Progress starts a bar for total units of work; with 0, unknown, it shows nothing. The caller must call End.
func (c *Context) Progress(title string, total int64) *Progress {
	p := &Progress{title: title, total: total}
	if total > 0 {
		p.line = c.Line(p.bar)
	}
	return p
}

// End erases the bar.
func (p *Progress) End() {
	if p.line != nil {
		p.line.End()
	}
}

// Add counts n more units as done. It may be called from any goroutine.
func (p *Progress) Add(n int64) { p.done.Add(n) }

func (p *Progress) bar() string {
	share := min(float64(p.done.Load())/float64(p.total), 1)
	full := int(share * progressWidth)
	return fmt.Sprintf("%s [%s%s] %3.0f%%", p.title, strings.Repeat("#", full), strings.Repeat(".", progressWidth-full), 100*share)
}

// Reader returns a reader of r that counts the bytes read as done.
func (p *Progress) Reader(r io.Reader) io.Reader { return &countingReader{r, p} }

type countingReader struct {
	io.Reader
	p *Progress
}

func (c *countingReader) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.p.Add(int64(n))
	return n, err
}
