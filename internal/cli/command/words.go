package command

import (
	"os"
	"os/signal"
	"strings"
	"syscall"

	"gm/internal/cli"
)

// Words returns the program and its arguments from the words after a command such as "gmtrace run". A first word that looks like a flag is
// refused, unless it follows "--".
func Words(command string, words []string) ([]string, error) {
	switch {
	case len(words) > 0 && words[0] == "--":
		words = words[1:]
	case len(words) > 0 && strings.HasPrefix(words[0], "-"):
		return nil, cli.Usage("unknown flag %s: see %s --help, or put -- before the command", words[0], command)
	}
	if len(words) == 0 {
		return nil, cli.Usage("no command to run: %s -- COMMAND", command)
	}
	return words, nil
}

// KeepFromPipe makes a write to a closed pipe return an error instead of killing the process, so that its folders are removed, until the
// returned function is called.
func KeepFromPipe() (release func()) {
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE)
	return func() { signal.Stop(pipes) }
}
