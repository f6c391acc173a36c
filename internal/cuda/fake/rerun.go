package fake

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// rerun marks a process that Rerun started.
const rerun = "GM_FAKE_RERUN"

// Rerun is for TestMain: it runs the tests again in a process that finds the fake driver, and returns the exit status. A new process is
// needed, since the loader reads the search path at the start. In that process Rerun calls run. The further variables are for the fake.
func Rerun(run func() int, environment ...string) int {
	if os.Getenv(rerun) != "" {
		return run()
	}
	status, err := runAgain(environment)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return status
}

func runAgain(environment []string) (int, error) {
	dir, err := os.MkdirTemp("", "gm-fake-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	libraries, err := Build(dir)
	if err != nil {
		return 0, err
	}
	cmd := exec.Command(os.Args[0], os.Args[1:]...)
	cmd.Env = append(append(os.Environ(), libraries.Env("")...), append(environment, rerun+"=1")...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	var exit *exec.ExitError
	if err := cmd.Run(); errors.As(err, &exit) {
		return max(exit.ExitCode(), 1), nil
	} else if err != nil {
		return 0, err
	}
	return 0, nil
}
