// Package command runs a user's program under one of gm's tools. It handles signals, the exit status, the environment, and a folder for the
// files that the program loads.
package command

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"gm/internal/cli"
)

// Result is how a program ended.
type Result struct {
	Status      int  // its own, or 128 plus the number of the signal that ended it, as in a shell
	Interrupted bool // Ctrl-C was pressed while it ran
}

// Run starts a command whose streams and environment are set, and waits until it ends. Meanwhile it calls poll, unless nil, at every tick.
// Signals sent to this process are passed on, except those that a terminal sends to both. A command in a session of its own has no
// terminal: it gets all signals, and those of keys go to its whole process group. An error is a *StartError.
func Run(cmd *exec.Cmd, tick time.Duration, poll func()) (Result, error) {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, cli.Heeded(passedOn...)...) // signals that nohup ignores stay ignored
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return Result{}, &StartError{cmd.Args[0], err}
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	var ticks <-chan time.Time
	if poll != nil {
		ticker := time.NewTicker(tick)
		defer ticker.Stop()
		ticks = ticker.C
	}
	var r Result
	terminal := hasTerminal()
	for {
		select {
		case sig := <-signals:
			r.Interrupted = r.Interrupted || sig == syscall.SIGINT
			pass(cmd, sig.(syscall.Signal), terminal)
		case <-ticks:
			poll()
		case err := <-ended:
			r.Status = statusOf(err, cmd.ProcessState)
			return r, nil
		}
	}
}

// pass sends a signal to a command that has not received it.
func pass(cmd *exec.Cmd, sig syscall.Signal, terminal bool) {
	apart := cmd.SysProcAttr != nil && cmd.SysProcAttr.Setsid
	switch key := sig == syscall.SIGINT || sig == syscall.SIGQUIT; {
	case key && apart:
		_ = syscall.Kill(-cmd.Process.Pid, sig) // as a terminal does
	case !key || !terminal:
		_ = cmd.Process.Signal(sig) // the process may have ended just now
	}
}

// passedOn lists the signals that are passed on to a program.
var passedOn = []os.Signal{
	syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGCONT,
}

// hasTerminal reports whether there is a controlling terminal, which sends the signals of its keys to the command as well.
func hasTerminal() bool {
	f, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	return f.Close() == nil
}

func statusOf(err error, state *os.ProcessState) int {
	if err == nil {
		return 0
	}
	if wait, ok := state.Sys().(syscall.WaitStatus); ok && wait.Signaled() {
		return 128 + int(wait.Signal())
	}
	return state.ExitCode()
}
