package capture

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"
	"time"
)

const (
	pollPeriod = 10 * time.Millisecond
	// grace is how long processes that a command left behind may still be about to end.
	grace = 2 * time.Second
)

// Run starts a command and records it and its descendants until it ends. It returns the exit status: the command's own, or 128 and
// the number of the signal that ended it. Signals that this process gets are passed on, but for those that a terminal sends to both.
func (s *Session) Run(words []string, stdout io.Writer) (status int, err error) {
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, stdout, os.Stderr
	return s.RunCommand(cmd)
}

// RunCommand is Run with a command whose streams are set. One that is to be in a session of its own has no terminal: it gets all signals,
// and those of keys go to all of its group.
func (s *Session) RunCommand(cmd *exec.Cmd) (status int, err error) {
	cmd.Env = s.Environ(os.Environ())
	s.words = cmd.Args
	defer s.live.Close()
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, slices.DeleteFunc(slices.Clone(passedOn), signal.Ignored)...) // nohup stays in force
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return 0, &StartError{cmd.Args[0], err}
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	terminal, apart := hasTerminal(), cmd.SysProcAttr != nil && cmd.SysProcAttr.Setsid
	tick := time.NewTicker(pollPeriod)
	defer tick.Stop()
	var failed error
	for {
		select {
		case sig := <-signals:
			s.interrupted = s.interrupted || sig == syscall.SIGINT
			switch key := sig == syscall.SIGINT || sig == syscall.SIGQUIT; {
			case key && apart:
				syscall.Kill(-cmd.Process.Pid, sig.(syscall.Signal)) // as a terminal does
			case !key || !terminal:
				cmd.Process.Signal(sig) // it may just have ended
			}
		case <-tick.C:
			if failed != nil {
				s.silence()
			} else if failed = s.Poll(); failed != nil {
				s.options.Warn("nothing is recorded any more, the command goes on: %v", failed)
			}
		case err := <-ended:
			if failed == nil {
				failed = s.linger()
			}
			return statusOf(err, cmd.ProcessState), failed
		}
	}
}

// Interrupted tells whether Ctrl-C came while the command ran.
func (s *Session) Interrupted() bool { return s.interrupted }

// StartError is why a command could not be started.
type StartError struct {
	Name string
	Err  error
}

// Error implements error.
func (e *StartError) Error() string {
	err := e.Err
	if inner := (*fs.PathError)(nil); errors.As(err, &inner) {
		err = inner.Err
	} else if inner := (*exec.Error)(nil); errors.As(err, &inner) {
		err = inner.Err
	}
	_, statErr := os.Stat(e.Name)
	switch {
	case e.Name == "":
		return "run: the name of the program is empty"
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Sprintf("run %s: no such program in $PATH", e.Name)
	case errors.Is(err, syscall.ENOENT) && statErr == nil:
		return fmt.Sprintf("run %s: the interpreter that it names is not there", e.Name)
	case errors.Is(err, syscall.ENOEXEC):
		return fmt.Sprintf("run %s: neither a program nor a script that begins with #!", e.Name)
	}
	return fmt.Sprintf("run %s: %v", e.Name, err)
}

// Unwrap returns what the system said.
func (e *StartError) Unwrap() error { return e.Err }

// passedOn are the signals that a program may be sent to tell it something.
var passedOn = []os.Signal{
	syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGCONT,
}

// hasTerminal tells whether there is a terminal, which sends the signals of its keys to the command as well.
func hasTerminal() bool {
	f, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	return f.Close() == nil
}

// statusOf returns an exit status as a shell would.
func statusOf(err error, state *os.ProcessState) int {
	if err == nil {
		return 0
	}
	if wait, ok := state.Sys().(syscall.WaitStatus); ok && wait.Signaled() {
		return 128 + int(wait.Signal())
	}
	return state.ExitCode()
}

// linger records processes that outlive the command, for a while.
func (s *Session) linger() error {
	for end := time.Now().Add(grace); ; time.Sleep(pollPeriod) {
		if err := s.Poll(); err != nil {
			return err
		}
		alive := s.alive()
		if len(alive) == 0 {
			return nil
		}
		if time.Now().After(end) {
			s.options.Warn("%s: what happens from now on is not recorded", stillRun(alive))
			return nil
		}
	}
}

func stillRun(pids []int) string {
	if len(pids) == 1 {
		return fmt.Sprintf("process %d still runs", pids[0])
	}
	return fmt.Sprintf("%d processes still run, %d among them", len(pids), pids[0])
}
