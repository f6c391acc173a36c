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
	if err := s.describe(); err != nil {
		s.trouble(err) // only Recover would miss it
	}
	result, err := command.Run(cmd, pollPeriod, s.Poll)
	s.interrupted = result.Interrupted
	if err != nil {
		return 0, err
	}
	s.linger()
	return result.Status, nil
}

// Interrupted tells whether Ctrl-C came while the command ran.
func (s *Session) Interrupted() bool { return s.interrupted }

// linger records processes that outlive the command, for a while.
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
