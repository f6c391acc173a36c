package top

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"gm/internal/capture/live"
	"gm/internal/cli"
)

// Viewer shows a page of a capture.
type Viewer struct {
	c      *cli.Context
	folder string // of the capture
	page   page
}

// Refresh is the period at which the page is refreshed.
const Refresh = time.Second

const (
	// The size of a page without a terminal.
	plainWidth  = 100
	plainHeight = 50
)

// New returns a viewer of the capture in a folder, with an empty page.
func New(c *cli.Context, folder string) *Viewer { return &Viewer{c: c, folder: folder} }

// Ask asks the capture for its present view. It does not change the page.
func (v *Viewer) Ask() (*live.View, error) { return live.Ask(v.folder) }

// Show puts a view on the page.
func (v *Viewer) Show(view *live.View) { v.page.view = view }

// Shown returns the view on the page, nil before the first.
func (v *Viewer) Shown() *live.View { return v.page.view }

// Choose selects the process with a PID, if the view has it.
func (v *Viewer) Choose(pid int) { v.page.choose(pid) }

// Chosen returns the process that is shown, nil if there is none.
func (v *Viewer) Chosen() *live.Process {
	if n := v.page.index(); n >= 0 {
		return &v.page.view.Processes[n]
	}
	return nil
}

// Print prints the page as plain text.
func (v *Viewer) Print() error {
	p := v.page
	p.keys, p.output = "", nil
	var text strings.Builder
	for _, line := range p.lines(plainWidthOf(v.c.Out), plainHeight) {
		text.WriteString(strings.TrimRight(line.text, " ") + "\n")
	}
	_, err := io.WriteString(v.c.Out, text.String())
	return err
}

// plainWidthOf returns the characters of a line of plain text.
func plainWidthOf(out io.Writer) int {
	if f, ok := out.(*os.File); ok {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 {
			return columns
		}
	}
	return plainWidth
}

// news is the answer of a capture.
type news struct {
	view *live.View
	err  error
}

// listen asks every Refresh until stop is closed.
func (v *Viewer) listen(to chan<- news, stop <-chan struct{}) {
	tick := time.NewTicker(Refresh)
	defer tick.Stop()
	for {
		view, err := v.Ask()
		select {
		case to <- news{view, err}:
		case <-stop:
			return
		}
		select {
		case <-tick.C:
		case <-stop:
			return
		}
	}
}

// watched is what the page reacts to while it is shown.
type watched struct {
	signals   <-chan os.Signal // that end it
	over      <-chan struct{}  // closed when the capture ends; nil if its answers tell that
	interrupt func()           // called on Ctrl-C; nil if Ctrl-C is the same as q
	look      func()           // called before the page is drawn; may be nil
}

// reason is why a page was closed.
type reason int

const (
	left reason = iota // by the user
	ended
	signalled
)

// show shows the page until there is a reason to stop. sig is the signal, for signalled.
func (v *Viewer) show(s *screen, w watched) (why reason, sig os.Signal, err error) {
	fresh, stop := make(chan news), make(chan struct{})
	defer close(stop)
	go v.listen(fresh, stop)
	for {
		if w.look != nil {
			w.look()
		}
		if err := s.draw(v.page.lines(s.size())); err != nil {
			return left, nil, err
		}
		select {
		case n := <-fresh:
			if v.take(n) && w.over == nil {
				return ended, nil, nil
			}
		case k := <-s.keys:
			if k == keyInterrupt && w.interrupt != nil {
				w.interrupt()
			} else if k == keyQuit || k == keyInterrupt {
				return left, nil, nil
			}
			v.page.press(k)
		case <-s.resized:
		case <-w.over:
			return ended, nil, nil
		case sig := <-w.signals:
			return signalled, sig, nil
		}
	}
}

// take puts an answer on the page. It reports whether the capture has ended.
func (v *Viewer) take(n news) bool {
	switch {
	case n.err == nil:
		v.page.view, v.page.problem = n.view, ""
	case errors.Is(n.err, live.ErrEnded):
		return true
	default:
		v.page.problem = n.err.Error()
	}
	return false
}

const footer = "q quit  tab, arrows: process  k stacks  s streams  t tags"

// Watch shows the page of a capture until the capture ends or the user quits.
func (v *Viewer) Watch() error {
	release := v.c.OwnSignals()
	defer release()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, cli.Heeded(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)...)
	defer signal.Stop(signals)
	v.page.keys = footer
	s, err := openScreen()
	if err != nil {
		return err
	}
	why, sig, err := v.show(s, watched{signals: signals})
	if err := errors.Join(err, s.close()); err != nil {
		return err
	}
	switch why {
	case ended:
		v.c.Note("%v; its last page:", live.ErrEnded)
		return v.Print()
	case signalled:
		return cli.Status(128 + int(sig.(syscall.Signal)))
	}
	return nil
}
