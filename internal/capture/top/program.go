package top

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"gm/internal/capture"
	"gm/internal/cli"
	"gm/internal/cli/command"
)

// Program is a program that this process runs and captures. Its output goes to a file.
type Program struct {
	words    []string
	session  *capture.Session
	log      *os.File // its output
	done     chan struct{}
	warnings []string // of the session; read warnings, status and err only when done is closed
	status   int
	err      error
}

// NewProgram returns a program, not started yet, from its name and arguments.
func NewProgram(words []string) *Program { return &Program{words: words, done: make(chan struct{})} }

// Warn keeps a warning of the session until the page has closed. It is meant for [capture.Options].
func (p *Program) Warn(format string, args ...any) {
	p.warnings = append(p.warnings, fmt.Sprintf(format, args...))
}

// Run runs the program until it ends and, if a page is wanted, shows it meanwhile. It returns the program's exit status and its last page,
// nil if the user closed it. If the program does not start, the error is a [command.StartError]. Without an error, call Conclude next.
func (p *Program) Run(c *cli.Context, session *capture.Session, paged bool) (last *Viewer, status int, err error) {
	p.session = session
	if p.log, err = os.CreateTemp("", "gmtrace-output-*.log"); err != nil {
		return nil, 0, err
	}
	release := c.OwnSignals()
	// The session passes signals on. Just before or after the run, too, they must not end this process with the terminal still raw.
	held := make(chan os.Signal, 1)
	signal.Notify(held, cli.Heeded(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)...)
	go p.run()
	v, why := New(c, session.Folder()), ended
	if paged {
		why, err = p.page(v)
	}
	<-p.done
	signal.Stop(held)
	release()
	for _, text := range p.warnings {
		c.Warn("%s", text)
	}
	if failed := (*command.StartError)(nil); errors.As(p.err, &failed) {
		return nil, 0, errors.Join(failed, p.log.Close(), os.Remove(p.log.Name()))
	}
	if err := errors.Join(err, p.err); err != nil {
		return nil, 0, errors.Join(err, p.log.Close())
	}
	v.Show(session.View())
	if why != ended {
		v = nil
	}
	return v, p.status, nil
}

// Conclude prints where the output of the program is, and removes the file if it is empty.
func (p *Program) Conclude(c *cli.Context) error {
	info, err := p.log.Stat()
	if err := errors.Join(err, p.log.Close()); err != nil {
		return err
	}
	if info.Size() == 0 {
		return os.Remove(p.log.Name())
	}
	c.Note("%s: what the program printed", p.log.Name())
	return nil
}

// run runs the program in a session of its own, so that it cannot use the terminal.
func (p *Program) run() {
	defer close(p.done)
	program := exec.Command(p.words[0], p.words[1:]...)
	program.Stdout, program.Stderr = p.log, p.log
	program.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	p.status, p.err = p.session.RunCommand(program)
}

// page shows the page until the program ends or the user presses q.
func (p *Program) page(v *Viewer) (reason, error) {
	v.page.keys = "q leave  Ctrl-C interrupt  tab, arrows: process  k stacks  s streams  t tags"
	s, err := openScreen()
	if err != nil {
		return left, err
	}
	why, _, err := v.show(s, watched{
		over:      p.done,
		interrupt: func() { _ = syscall.Kill(os.Getpid(), syscall.SIGINT) }, // the session passes it on
		look:      func() { v.page.output = p.lastLines() },
	})
	if err := errors.Join(err, s.close()); err != nil {
		return left, err
	}
	if why == left {
		v.c.Note("%s goes on; its output:", strings.Join(p.words, " "))
		err = p.follow(v.c.Out)
	}
	return why, err
}

// lastLines returns the last lines of the program's output, as a terminal would show them.
func (p *Program) lastLines() []string {
	const most = 16 << 10
	info, err := p.log.Stat()
	if err != nil {
		return nil
	}
	text := make([]byte, min(info.Size(), most))
	n, err := p.log.ReadAt(text, info.Size()-int64(len(text)))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil
	}
	text = bytes.TrimRight(text[:n], "\r\n")
	if len(text) == 0 {
		return nil
	}
	lines := strings.Split(string(text), "\n")
	for i, line := range lines {
		line = strings.TrimRight(line, "\r")
		lines[i] = strings.ReplaceAll(line[strings.LastIndexByte(line, '\r')+1:], "\t", "    ")
	}
	return lines
}

// follow prints the program's further output until it ends.
func (p *Program) follow(w io.Writer) error {
	info, err := p.log.Stat()
	if err != nil {
		return err
	}
	at := info.Size()
	for {
		over := false
		select {
		case <-p.done:
			over = true
		case <-time.After(100 * time.Millisecond):
		}
		n, err := io.Copy(w, io.NewSectionReader(p.log, at, 1<<62))
		if err != nil || over {
			return err
		}
		at += n
	}
}
