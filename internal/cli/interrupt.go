package cli

import (
	"context"
	"io"
	"os"
	"os/signal"
	"slices"
	"sync/atomic"
	"syscall"
	"time"
)

// grace is how long a command has to return after an interrupt. Then the process exits.
const grace = 150 * time.Millisecond

// interrupt ends a command on a signal.
type interrupt struct {
	ctx    context.Context
	cancel context.CancelFunc
	signal atomic.Int32 // received, 0 for none
}

func newInterrupt() *interrupt {
	i := &interrupt{}
	i.ctx, i.cancel = context.WithCancel(context.Background())
	return i
}

// Context returns a context that an interrupt cancels, for all loops of a command. If the command has not returned 150 ms later, the
// process exits.
func (c *Context) Context() context.Context {
	if c.interrupt == nil {
		return context.Background()
	}
	return c.interrupt.ctx
}

// Reader returns a reader of r that fails after an interrupt.
func (c *Context) Reader(r io.Reader) io.Reader { return &interruptible{r, c.Context()} }

type interruptible struct {
	io.Reader
	ctx context.Context
}

func (i *interruptible) Read(b []byte) (int, error) {
	if err := i.ctx.Err(); err != nil {
		return 0, err
	}
	return i.Reader.Read(b)
}

// Heeded returns those of the signals that this process was not started to ignore. nohup, and shells for background jobs, start programs
// that ignore some. Handling those would undo that, also for programs that this process starts.
func Heeded(signals ...os.Signal) []os.Signal {
	return slices.DeleteFunc(slices.Clone(signals), signal.Ignored)
}

// watchInterrupts cancels the context on an interrupt and, if the command does not return, removes unfinished files and exits. The function
// that it returns ends the watch.
func (c *Context) watchInterrupts() (stop func()) {
	signals := make(chan os.Signal, 1)
	done := make(chan struct{})
	signal.Notify(signals, Heeded(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)...)
	go func() {
		select {
		case s := <-signals:
			c.interrupt.signal.Store(int32(s.(syscall.Signal)))
			c.interrupt.cancel()
		case <-done:
			return
		}
		select {
		case <-time.After(grace):
		case <-signals:
		case <-done:
			return
		}
		c.outputs.removeAll()
		os.Exit(statusSignalled + int(c.interrupt.signal.Load()))
	}()
	return func() {
		signal.Stop(signals)
		close(done)
	}
}

// OwnSignals leaves interrupts to the command until the returned function is called. By default they end the tool.
func (c *Context) OwnSignals() (release func()) {
	c.stop()
	c.stop = func() {}
	return func() { c.stop = c.watchInterrupts() }
}
