package client

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"gm/internal/libgm/planner/wire"
)

// connect opens a connection to a Unix socket. Package net would double the size of libgm.so.
func connect(ctx context.Context, path string) (*os.File, error) {
	name, release, err := wire.Address(path)
	if err != nil {
		return nil, err
	}
	defer release()
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	for {
		err = syscall.Connect(fd, &syscall.SockaddrUnix{Name: name})
		if err == nil {
			return os.NewFile(uintptr(fd), path), nil
		}
		if !errors.Is(err, syscall.EAGAIN) && !errors.Is(err, syscall.EINTR) { // EAGAIN: others wait to be accepted
			break
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), syscall.Close(fd))
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil, errors.Join(os.NewSyscallError("connect", err), syscall.Close(fd))
}
