package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
)

// StartError is the error of a command that could not be started.
type StartError struct {
	Name string
	Err  error
}

// Error implements error.
func (e *StartError) Error() string {
	err := e.Err
	if inner := (*fs.PathError)(nil); errors.As(err, &inner) {
		err = inner.Err
	} else if inner := (*exec.Error)(nil); errors.As(err, &inner) {
		err = inner.Err
	}
	_, statErr := os.Stat(e.Name)
	switch {
	case e.Name == "":
		return "run: the name of the program is empty"
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Sprintf("run %s: no such program in $PATH", e.Name)
	case errors.Is(err, syscall.ENOENT) && statErr == nil:
		return fmt.Sprintf("run %s: the interpreter that it names is not there", e.Name)
	case errors.Is(err, syscall.ENOEXEC):
		return fmt.Sprintf("run %s: neither a program nor a script that begins with #!", e.Name)
	}
	return fmt.Sprintf("run %s: %v", e.Name, err)
}

// Unwrap returns the system's error.
func (e *StartError) Unwrap() error { return e.Err }

// Status returns the exit status that a shell would report.
func (e *StartError) Status() int {
	if errors.Is(e, fs.ErrNotExist) || errors.Is(e, exec.ErrNotFound) {
		return 127
	}
	return 126
}
