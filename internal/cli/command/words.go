package command

import (
	"os"
	"os/signal"
	"strings"
	"syscall"

	"gm/internal/cli"
)

// Words returns the program among the words of a command line, that of a command such as "gmtrace run". What looks like a flag is no program,
// but after "--".
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

// KeepFromPipe makes writing to a closed pipe an error, which leaves no folders behind, until the function that it returns is called.
func KeepFromPipe() (release func()) {
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE)
	return func() { signal.Stop(pipes) }
}
