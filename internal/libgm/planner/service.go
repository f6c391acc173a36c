package planner

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"gm/internal/libgm/planner/client"
	"gm/internal/libgm/planner/wire"
)

const (
	socketName = "planner"
	// connectionsMax is how many processes are served or wait at a time. More wait to be accepted.
	connectionsMax = 256
	// transferTime is how long a request or an answer may take on its way.
	transferTime = 10 * time.Second
)

// Service is the socket of a run.
type Service struct {
	Path string

	listener net.Listener
	release  func()
	command  func() *exec.Cmd
	planners chan struct{} // one for each that runs
	stop     context.CancelFunc
	served   sync.WaitGroup
}

// Listen makes a socket in a folder of this user alone, and answers requests there by this very program: see [Asked].
func Listen(folder, tool string) (*Service, error) {
	return listen(folder, func() *exec.Cmd {
		cmd := exec.Command("/proc/self/exe", client.Word)
		cmd.Args[0] = tool
		return cmd
	})
}

func listen(folder string, command func() *exec.Cmd) (*Service, error) {
	s := &Service{Path: filepath.Join(folder, socketName), command: command}
	name, release, err := wire.Address(s.Path)
	if err != nil {
		return nil, err
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		release()
		return nil, err
	}
	listener.SetUnlinkOnClose(false) // the name may lead through a descriptor
	s.listener, s.release = listener, release
	// Planners use two threads each, and the job needs the processors more than they do.
	s.planners = make(chan struct{}, max(1, runtime.NumCPU()/2))
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.served.Go(func() { s.accept(ctx) })
	return s, nil
}

// Close ends the planners that run, and removes the socket.
func (s *Service) Close() error {
	s.stop()
	err := s.listener.Close()
	s.served.Wait()
	s.release()
	return errors.Join(err, os.Remove(s.Path))
}

func (s *Service) accept(ctx context.Context) {
	connections := make(chan struct{}, connectionsMax)
	for {
		connections <- struct{}{}
		c, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // such as too many descriptors
			<-connections
			time.Sleep(10 * time.Millisecond)
			continue
		}
		s.served.Go(func() {
			defer func() { <-connections }()
			defer c.Close()
			s.serve(ctx, c)
		})
	}
}

// serve answers the request of a connection. Those that cannot be planned at once wait in the socket, and take no memory here.
func (s *Service) serve(ctx context.Context, c net.Conn) {
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	select {
	case s.planners <- struct{}{}:
		defer func() { <-s.planners }()
	case <-ctx.Done():
		return
	}
	answer, err := s.plan(ctx, c)
	if err != nil {
		answer = wire.Fail(err)
	}
	if c.SetDeadline(time.Now().Add(transferTime)) == nil {
		_ = wire.Write(c, answer) // who does not read it has ended or given up
	}
}

func (s *Service) plan(ctx context.Context, c net.Conn) (wire.Message, error) {
	if err := c.SetReadDeadline(time.Now().Add(transferTime)); err != nil {
		return wire.Message{}, err
	}
	asked, err := wire.Read(c)
	if err != nil {
		return wire.Message{}, fmt.Errorf("read the request: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, client.ScheduleTime)
	defer cancel()
	if err := c.SetReadDeadline(time.Time{}); err != nil {
		return wire.Message{}, err
	}
	go func() { // a process that has ended needs no plan
		defer cancel()
		_, _ = c.Read(make([]byte, 1))
	}()
	return client.Run(ctx, s.command(), asked)
}
