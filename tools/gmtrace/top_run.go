package main

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
	"gm/internal/capture/live"
	"gm/internal/cli"
	"gm/internal/cli/command"
)

// program is a program that runs under a capture of this process.
type program struct {
	session  *capture.Session
	log      *os.File // takes what it prints
	done     chan struct{}
	warnings []string // of the session; these three are to be read when it is done
	status   int
	err      error
}

// runProgram does what --run asks for.
func (cmd *topCmd) runProgram(c *cli.Context) error {
	if len(cmd.Words) == 0 {
		return cli.Usage("no command to run: gmtrace top --run -- COMMAND")
	}
	if cmd.Output == "-" {
		return cli.Usage("the page takes standard output: name a file for the trace")
	}
	p := &program{done: make(chan struct{})}
	recording := runCmd{Output: cmd.Output, Stacks: cmd.Stacks, Marks: cmd.Marks}
	options, err := recording.options(c)
	if err != nil {
		return cli.Usage("%v", err)
	}
	if cmd.Output != "" {
		if err := capture.CheckOutput(cmd.Output); err != nil {
			return err
		}
	}
	options.Warn = func(format string, args ...any) { p.warnings = append(p.warnings, fmt.Sprintf(format, args...)) }
	if p.session, err = newSession(options); err != nil {
		return err
	}
	defer command.KeepFromPipe()()
	status, err := cmd.showProgram(c, p)
	if cmd.Output == "" { // the page was all that is wanted
		err = errors.Join(err, p.session.Close())
	} else {
		err = conclude(c, p.session, err)
	}
	if err != nil {
		return err
	}
	return status
}

// showProgram runs the program, shows the page meanwhile, and writes traces. It returns the program's exit status.
func (cmd *topCmd) showProgram(c *cli.Context, p *program) (status cli.Status, err error) {
	if p.log, err = os.CreateTemp("", "gmtrace-output-*.log"); err != nil {
		return 0, err
	}
	defer p.log.Close()
	release := c.OwnSignals()
	// The session hands signals on. They must not end this process, and leave the terminal as it is, just before or after.
	held := make(chan os.Signal, 1)
	signal.Notify(held, cli.Heeded(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)...)
	go p.run(cmd.Words)
	v := newViewer(c, func() (*live.View, error) { return live.Ask(p.session.Folder()) })
	why, err := cmd.page(v, p)
	<-p.done
	signal.Stop(held)
	release()
	for _, text := range p.warnings {
		c.Warn("%s", text)
	}
	if failed := (*command.StartError)(nil); errors.As(p.err, &failed) {
		c.Fail(failed)
		return cli.Status(failed.Status()), os.Remove(p.log.Name())
	}
	if err := errors.Join(err, p.err); err != nil {
		return 0, err
	}
	v.page.view = p.session.View()
	if cmd.JSON {
		err = cli.WriteJSON(c.Out, v.page.view)
	} else if why == ended {
		err = v.print()
	}
	return cli.Status(p.status), errors.Join(err, cmd.finish(c, p))
}

// run runs the program in a session of its own, so that it leaves the terminal alone.
func (p *program) run(words []string) {
	defer close(p.done)
	program := exec.Command(words[0], words[1:]...)
	program.Stdout, program.Stderr = p.log, p.log
	program.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	p.status, p.err = p.session.RunCommand(program)
}

// page shows the page until the program ends, which q does not wait for. Where there is no terminal it only waits.
func (cmd *topCmd) page(v *viewer, p *program) (reason, error) {
	if cmd.Once || cmd.JSON || !isTerminal(v.c.Out) {
		<-p.done
		return ended, nil
	}
	v.page.keys = "q leave  Ctrl-C interrupt  tab, arrows: process  k stacks  s streams  t tags"
	s, err := openScreen()
	if err != nil {
		return left, err
	}
	why, _, err := v.show(s, watched{
		over:      p.done,
		interrupt: func() { _ = syscall.Kill(os.Getpid(), syscall.SIGINT) }, // the session hands it on
		look:      func() { v.page.output = p.lastLines() },
	})
	if err := errors.Join(err, s.close()); err != nil {
		return left, err
	}
	if why == left {
		v.c.Note("%s goes on; its output:", strings.Join(cmd.Words, " "))
		err = p.follow(v.c.Out)
	}
	return why, err
}

// finish writes the traces that are asked for, and says where the output of the program is.
func (cmd *topCmd) finish(c *cli.Context, p *program) error {
	if cmd.Output != "" {
		outputs, err := p.session.Outputs(cmd.Output)
		if err != nil {
			return err
		}
		if len(outputs) == 0 {
			c.Warn("%s", noTrace)
		}
		if err := writeAll(c, outputs); err != nil {
			return err
		}
	}
	if info, err := p.log.Stat(); err == nil && info.Size() == 0 {
		return os.Remove(p.log.Name())
	}
	c.Note("%s: what the program printed", p.log.Name())
	return nil
}

// lastLines returns the last lines that the program printed, as a terminal would show them.
func (p *program) lastLines() []string {
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

// follow prints what the program prints from now on, until it is done.
func (p *program) follow(w io.Writer) error {
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
