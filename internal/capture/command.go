package capture

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"gm/internal/cli/command"
)

const (
	pollPeriod = 10 * time.Millisecond
	// grace is how long to wait for processes that outlive the command.
	grace = 2 * time.Second
)

// Run starts a command and records it and its descendants until it ends. It returns the exit status: the command's own, or 128 plus
// the number of the signal that ended it. Signals sent to this process are passed on, except those that a terminal sends to both.
func (s *Session) Run(words []string, stdout io.Writer) (status int, err error) {
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, stdout, os.Stderr
	return s.RunCommand(cmd)
}

// RunCommand is Run for a command whose streams are set. A command in a session of its own (SysProcAttr.Setsid) has no terminal: it gets
// all signals, and those of keys go to its whole process group.
func (s *Session) RunCommand(cmd *exec.Cmd) (status int, err error) {
	cmd.Env = s.Environ(os.Environ())
	s.words = cmd.Args
	defer s.live.Close()
	if err := s.describe(); err != nil {
		s.trouble(err) // only Recover needs it
	}
	result, err := command.Run(cmd, pollPeriod, s.Poll)
	s.interrupted = result.Interrupted
	if err != nil {
		return 0, err
	}
	s.linger()
	return result.Status, nil
}

// Interrupted reports whether Ctrl-C was pressed while the command ran.
func (s *Session) Interrupted() bool { return s.interrupted }

// linger keeps recording processes that outlive the command, for at most grace.
func (s *Session) linger() {
	for end := time.Now().Add(grace); ; time.Sleep(pollPeriod) {
		s.Poll()
		alive := s.alive()
		if len(alive) == 0 {
			return
		}
		if time.Now().After(end) {
			s.options.Warn("%s: what happens from now on is not recorded", stillRun(alive))
			return
		}
	}
}

func stillRun(pids []int) string {
	if len(pids) == 1 {
		return fmt.Sprintf("process %d still runs", pids[0])
	}
	return fmt.Sprintf("%d processes still run, %d among them", len(pids), pids[0])
}
