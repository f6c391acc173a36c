// Package client is libgm.so's side of planning: it requests plans from a process outside of the job's, and checks what that answers. A
// planner that is slow, fails or is killed costs the job its plan and nothing else.
package client

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"
	"unicode"

	"gm/internal/blocks"
	"gm/internal/libgm/planner/wire"
	ordering "gm/internal/order/request"
	"gm/internal/swap/partition"
	"gm/internal/swap/request"
)

const (
	// connectTime is how long a planner may take to accept a connection.
	connectTime = 2 * time.Second
	// LayoutTime and ScheduleTime are how long it may take to answer, the time in a queue included. A program that trains waits for a
	// schedule.
	LayoutTime   = time.Minute
	ScheduleTime = 2 * time.Minute
	// orderSlack is how much longer than the search that was asked for an order may take: a planner is started, and may have to wait.
	orderSlack = 2 * time.Second
	// partitionTime is how long a planner may take to say what a graph saves, which is being compiled meanwhile.
	partitionTime = 20 * time.Second
)

// Word is the command of gmstitch and gmswap that plans: it reads one request from standard input and writes one answer to standard output.
const Word = "planner"

// Planner is what plans for this process: the socket of a run of gmstitch or gmswap, or the program gmstitch or gmswap itself.
type Planner struct {
	Path string // "" if there is none
}

// ErrNone means that nothing plans for this process.
var ErrNone = errors.New("there is no planner: use gmstitch run, or set GM_PLANNER to the path of gmstitch")

// Layout requests a plan for an iteration, which is to be repeated without end.
func (p Planner) Layout(ctx context.Context, iteration []blocks.Request) (*blocks.Cycle, error) {
	return p.layout(ctx, iteration, wire.Message{Kind: wire.AskLayout, Body: wire.AppendRequests(nil, iteration)})
}

// LayoutSoon is Layout for an iteration that changes before long, where there is room for so many bytes: a plan that comes sooner is worth more
// than one of a little less memory.
func (p Planner) LayoutSoon(ctx context.Context, iteration []blocks.Request, room int64) (*blocks.Cycle, error) {
	return p.layout(ctx, iteration, wire.Message{Kind: wire.AskSoon, Body: wire.AppendSoon(nil, room, iteration)})
}

func (p Planner) layout(ctx context.Context, iteration []blocks.Request, asked wire.Message) (*blocks.Cycle, error) {
	if len(iteration) > wire.MaxRequests {
		return nil, fmt.Errorf("an iteration of %d requests is not planned: at most %d are", len(iteration), wire.MaxRequests)
	}
	c, err := p.cycle(ctx, asked)
	if err != nil {
		return nil, err
	}
	if len(c.Steps) != len(iteration) {
		return nil, fmt.Errorf("the planner answered with %d steps to %d requests", len(c.Steps), len(iteration))
	}
	for i, r := range iteration {
		if s := &c.Steps[i]; s.Size != r.Size || s.Stream != r.Stream || s.Lasts != r.Lasts {
			return nil, fmt.Errorf("the planner answered request %d with a step of another size, stream or lifetime", i)
		}
	}
	return c, nil
}

// File requests the plan of a file, whose name is absolute, for one device.
func (p Planner) File(ctx context.Context, name string, device int32) (*blocks.Cycle, error) {
	return p.cycle(ctx, wire.Message{Kind: wire.AskFile, Body: wire.AppendFile(nil, name, device)})
}

func (p Planner) cycle(ctx context.Context, m wire.Message) (*blocks.Cycle, error) {
	ctx, cancel := context.WithTimeout(ctx, LayoutTime)
	defer cancel()
	answer, err := p.request(ctx, m, wire.Cycle)
	if err != nil {
		return nil, err
	}
	c, err := wire.DecodeCycle(answer)
	if err != nil {
		return nil, fmt.Errorf("the planner's answer is not a plan: %w", err)
	}
	return c, nil
}

// Schedule requests a swap schedule, and returns the answer if it is right for the request. Both are JSON texts (package request).
func (p Planner) Schedule(ctx context.Context, text []byte) ([]byte, error) {
	asked, err := request.Read(text)
	if err != nil {
		return nil, err
	}
	return p.checked(ctx, ScheduleTime, wire.Message{Kind: wire.AskSchedule, Body: text}, wire.Schedule, "a schedule", asked.Check)
}

// Order requests an order of operators, and returns the answer if it is right for the request. Both are JSON texts (package order/request).
func (p Planner) Order(ctx context.Context, text []byte) ([]byte, error) {
	asked, err := ordering.Read(text)
	if err != nil {
		return nil, err
	}
	return p.checked(ctx, asked.Limit()+orderSlack, wire.Message{Kind: wire.AskOrder, Body: text}, wire.Order, "an order", asked.Check)
}

// Partition requests what a compiled graph saves, and returns the answer if it is right for the request. Both are JSON texts (package
// partition).
func (p Planner) Partition(ctx context.Context, text []byte) ([]byte, error) {
	asked, err := partition.Read(text)
	if err != nil {
		return nil, err
	}
	return p.checked(ctx, partitionTime, wire.Message{Kind: wire.AskPartition, Body: text}, wire.Partition, "a partition", asked.Check)
}

// checked sends a message and returns the body of its answer, which must be of a kind, come in time and pass a check.
func (p Planner) checked(ctx context.Context, limit time.Duration, m wire.Message, want wire.Kind, what string, check func([]byte) error) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	answer, err := p.request(ctx, m, want)
	if err != nil {
		return nil, err
	}
	if err := check(answer); err != nil {
		return nil, fmt.Errorf("the planner's answer is not %s: %w", what, err)
	}
	return answer, nil
}

// request sends a message and returns the body of its answer, which must be of a kind.
func (p Planner) request(ctx context.Context, m wire.Message, want wire.Kind) ([]byte, error) {
	answer, err := p.answer(ctx, m)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded):
		return nil, errors.New("the planner did not answer in time")
	case errors.Is(err, wire.ErrEnded):
		return nil, errors.New("the planner ended before it answered")
	case err != nil:
		return nil, err
	case answer.Kind == wire.Failure:
		return nil, errors.New(strings.Map(printable, string(answer.Body)))
	case answer.Kind != want:
		return nil, fmt.Errorf("the planner answered with a message of kind %d, expected %d", answer.Kind, want)
	}
	return answer.Body, nil
}

// printable leaves out what a terminal would take for more than text.
func printable(r rune) rune {
	if unicode.IsPrint(r) || r == '\n' || r == '\t' {
		return r
	}
	return -1
}

func (p Planner) answer(ctx context.Context, m wire.Message) (wire.Message, error) {
	if p.Path == "" {
		return wire.Message{}, ErrNone
	}
	info, err := os.Stat(p.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return wire.Message{}, fmt.Errorf("there is no planner at %s: the run that it belongs to may have ended", p.Path)
	case err != nil:
		return wire.Message{}, fmt.Errorf("look for the planner: %w", err)
	case info.Mode().Type() == fs.ModeSocket:
		return p.over(ctx, m)
	}
	return Run(ctx, command(p.Path), m)
}

// over sends a message over the socket, and reads the answer.
func (p Planner) over(ctx context.Context, m wire.Message) (wire.Message, error) {
	f, err := connect(ctx, p.Path)
	if err != nil {
		return wire.Message{}, fmt.Errorf("connect to the planner: %w", err)
	}
	defer f.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := f.SetDeadline(deadline); err != nil {
			return wire.Message{}, fmt.Errorf("connect to the planner: %w", err)
		}
	}
	failed := wire.Write(f, m)
	answer, err := wire.Read(f) // why the request is not read to its end may have been said
	if err != nil && failed != nil {
		err = fmt.Errorf("send a request to the planner: %w", failed)
	}
	return answer, err
}
