package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"gm/internal/libgm/planner/wire"
)

// command returns a planner that is run for one request. What is loaded into the processes of the job is not loaded into it.
func command(path string) *exec.Cmd {
	cmd := exec.Command(path, Word)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "LD_PRELOAD=") || strings.HasPrefix(variable, "LD_AUDIT=")
	})
	return cmd
}

// Run has a command that is not started yet answer one message, and ends it. It gets no signals of the terminal.
func Run(ctx context.Context, cmd *exec.Cmd, m wire.Message) (wire.Message, error) {
	in, out, err := os.Pipe()
	if err != nil {
		return wire.Message{}, fmt.Errorf("start the planner: %w", err)
	}
	defer in.Close()
	var request bytes.Buffer
	if err := wire.Write(&request, m); err != nil {
		return wire.Message{}, errors.Join(err, out.Close())
	}
	var said head
	cmd.Stdin, cmd.Stdout, cmd.Stderr = &request, out, &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second
	err = cmd.Start()
	out.Close()
	if err != nil {
		return wire.Message{}, fmt.Errorf("start the planner: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { in.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	answer, err := wire.Read(in)
	kill := err == nil || !errors.Is(err, wire.ErrEnded) // else it has ended, and how it did is worth knowing
	if kill {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // also what it has started
	}
	ended := wait(cmd)
	switch {
	case err == nil:
		return answer, nil
	case ctx.Err() != nil:
		return wire.Message{}, ctx.Err()
	case kill:
		return wire.Message{}, fmt.Errorf("the planner's answer: %w", err)
	}
	return wire.Message{}, fmt.Errorf("the planner ended before it answered: %v%s", ended, said.line())
}

// wait waits for the end of a command, which is near.
func wait(cmd *exec.Cmd) error {
	slow := time.AfterFunc(time.Second, func() { cmd.Process.Kill() })
	defer slow.Stop()
	if err := cmd.Wait(); err != nil {
		return err
	}
	return errors.New("exit status 0")
}

// head keeps the beginning of what a command says.
type head struct{ text []byte }

const headSize = 1 << 10

func (t *head) Write(p []byte) (int, error) {
	t.text = append(t.text, p[:min(len(p), headSize-len(t.text))]...)
	return len(p), nil
}

// line returns the first line, behind a colon.
func (t *head) line() string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(t.text)), "\n")
	if line == "" {
		return ""
	}
	return ": " + line
}
