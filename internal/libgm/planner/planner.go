// Package planner plans for the processes of a job, outside of them: layouts of iterations, the plans of files, swap schedules, orders of
// operators. libgm.so, in those processes, has the client (package client) and follows what it is answered once that is checked.
//
//	planner.go  the planner, a process for one request: it reads that from standard input and answers on standard output
//	near.go     layouts that are wanted soon
//	order.go    orders of operators
//	service.go  the socket of a run, whose owner starts a planner for each request
//
// The owner of a run parses nothing of a request but its frame. A planner that fails, hangs, is killed or takes all memory is one process,
// which the kernel ends before any other when memory is short.
package planner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"

	"gm/formats/plan"
	"gm/internal/blocks"
	"gm/internal/dsa"
	"gm/internal/dsa/solvers"
	"gm/internal/libgm/planner/client"
	"gm/internal/libgm/planner/wire"
	"gm/internal/plan/cyclic"
	"gm/internal/swap/answer"
)

const (
	// layoutTime is how long a layout is improved that is not proven to be the best, and layoutThreads how many threads do.
	layoutTime    = 5 * time.Second
	layoutThreads = 2
	// niceness is that of a planner that the job does not wait for.
	niceness = 10
)

// Asked says whether a command line is that of a planner.
func Asked(args []string) bool { return len(args) == 2 && args[1] == client.Word }

// Main is a planner: it answers one request, and returns the exit status.
func Main() int {
	die := time.AfterFunc(client.ScheduleTime, func() { os.Exit(1) }) // whoever asked has given up
	defer die.Stop()
	// When memory is short the kernel is to end this process, and not the job. Where that cannot be set, planning goes on.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "planner:", err)
		return 1
	}
	return 0
}

func serve(in io.Reader, out io.Writer) error {
	asked, err := wire.Read(in)
	if err != nil {
		return fmt.Errorf("read a request: %w", err)
	}
	if asked.Kind == wire.AskLayout || asked.Kind == wire.AskSoon || asked.Kind == wire.AskFile { // the job waits for the others
		lowerPriority()
	}
	answered, err := plans(asked)
	if err != nil {
		answered = wire.Fail(err)
	}
	if err := wire.Write(out, answered); err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	return nil
}

// plans answers a request. A panic is an error.
func plans(m wire.Message) (answered wire.Message, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("BUG in the planner: %v\n%s", r, debug.Stack())
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), layoutTime)
	defer cancel()
	switch m.Kind {
	case wire.AskLayout:
		iteration, err := wire.Requests(m.Body)
		return layout(ctx, iteration, solvers.Auto(), err)
	case wire.AskSoon:
		room, iteration, err := wire.Soon(m.Body)
		return layout(ctx, iteration, near{solvers.Auto(), spare(room, iteration)}, err)
	case wire.AskFile:
		return file(m.Body)
	case wire.AskSchedule:
		text, err := answer.Make(m.Body)
		return wire.Message{Kind: wire.Schedule, Body: text}, err
	case wire.AskOrder:
		return orders(m.Body)
	case wire.AskPartition:
		return partitions(m.Body)
	}
	return answered, fmt.Errorf("a message of kind %d is not a request", m.Kind)
}

// layout answers with the plan of an iteration that was read, or with the error of that.
func layout(ctx context.Context, iteration []blocks.Request, solver dsa.Solver, reading error) (answered wire.Message, err error) {
	if reading != nil {
		return answered, fmt.Errorf("read the request: %w", reading)
	}
	cycle, err := cyclic.Solve(ctx, iteration, solver, dsa.Options{Workers: layoutThreads})
	if err != nil {
		return answered, err
	}
	return wire.Message{Kind: wire.Cycle, Body: wire.AppendCycle(nil, cycle)}, nil
}

// file answers with the plan of a file.
func file(body []byte) (answered wire.Message, err error) {
	name, device, err := wire.File(body)
	if err != nil {
		return answered, fmt.Errorf("read the request: %w", err)
	}
	info, err := os.Stat(name)
	if err != nil {
		return answered, err
	}
	if !info.Mode().IsRegular() {
		return answered, fmt.Errorf("%s is not a regular file: write the plan to one", name)
	}
	r, err := plan.Open(name)
	if err != nil {
		return answered, err
	}
	defer r.Close()
	cycle, err := cyclic.Read(r, device)
	if err != nil {
		return answered, err
	}
	if len(cycle.Steps) > wire.MaxSteps || len(cycle.Arenas) > wire.MaxArenas {
		return answered, fmt.Errorf("plan %s has %d requests in %d arenas: at most %d in %d can be followed",
			name, len(cycle.Steps), len(cycle.Arenas), wire.MaxSteps, wire.MaxArenas)
	}
	return wire.Message{Kind: wire.Cycle, Body: wire.AppendCycle(nil, cycle)}, nil
}

// lowerPriority leaves the processors to the job: for all threads of this process, as each has a priority of its own, which those that it
// starts inherit.
func lowerPriority() {
	tasks, _ := filepath.Glob("/proc/self/task/[0-9]*")
	for _, task := range tasks {
		if id, err := strconv.Atoi(filepath.Base(task)); err == nil {
			err = syscall.Setpriority(syscall.PRIO_PROCESS, id, niceness)
			if err != nil && !errors.Is(err, syscall.ESRCH) {
				return
			}
		}
	}
}
