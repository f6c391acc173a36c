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

// Progress is a bar on standard error for work that takes more than a second. Without a terminal there is none.
type Progress struct {
	title string
	total int64
	done  atomic.Int64
	stop  chan struct{}
	ended chan struct{}
}

// The bar first shows after a second, and then anew ten times a second.
const (
	progressDelay = time.Second
	progressTick  = 100 * time.Millisecond
	progressWidth = 40
)

// Progress starts a bar for total units of work. End must be called.
func (c *Context) Progress(title string, total int64) *Progress {
	p := &Progress{title: title, total: total, stop: make(chan struct{}), ended: make(chan struct{})}
	f, ok := c.Err.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || total <= 0 {
		close(p.ended)
		return p
	}
	go p.run(f)
	return p
}

// Add says that n more units are done. It may be called from any goroutine.
func (p *Progress) Add(n int64) { p.done.Add(n) }

// End wipes the bar.
func (p *Progress) End() {
	close(p.stop)
	<-p.ended
}

func (p *Progress) run(w io.Writer) {
	defer close(p.ended)
	wait := time.NewTimer(progressDelay)
	defer wait.Stop()
	shown := false
	for {
		select {
		case <-p.stop:
			if shown {
				fmt.Fprint(w, "\r\033[K")
			}
			return
		case <-wait.C:
			fmt.Fprintf(w, "\r%s", p.bar())
			shown = true
			wait.Reset(progressTick)
		}
	}
}

func (p *Progress) bar() string {
	share := min(float64(p.done.Load())/float64(p.total), 1)
	full := int(share * progressWidth)
	return fmt.Sprintf("%s [%s%s] %3.0f%%", p.title, strings.Repeat("#", full), strings.Repeat(".", progressWidth-full), 100*share)
}

// Reader counts what is read from r as work done.
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
