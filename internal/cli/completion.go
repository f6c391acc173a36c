package cli

import (
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

// The words that make a tool print what it says of itself instead of doing its work: the completion script for a shell, and its
// manual page.
const (
	completionCommand = "completion"
	manCommand        = "man"
)

var shells = [...]string{"bash", "zsh", "fish"}

// complete prints a completion script: of commands, flags, their values where these are known, and of file names.
func complete(w io.Writer, shell string, model *kong.Application) error {
	switch shell {
	case "bash":
		return completeBash(w, model)
	case "zsh":
		if _, err := io.WriteString(w, "autoload -U +X bashcompinit && bashcompinit\n"); err != nil {
			return err
		}
		return completeBash(w, model)
	case "fish":
		return completeFish(w, model)
	}
	return Usage("completion for %q: expected %s", shell, strings.Join(shells[:], ", "))
}

// expects is what comes after a flag.
type expects int

const (
	nothing expects = iota
	words           // of a list
	file
	text // that cannot be completed
)

// value returns what comes after a flag, and the list of words.
func value(flag *kong.Flag) (expects, []string) {
	switch {
	case flag.IsBool() || flag.IsCounter():
		return nothing, nil
	case flag.Enum != "":
		return words, flag.EnumSlice()
	case strings.Contains(flag.PlaceHolder, "FILE") || strings.Contains(flag.PlaceHolder, "FOLDER"):
		return file, nil
	}
	return text, nil
}

// commands returns the names of the commands, and those of a tool that has none of its own.
func commands(model *kong.Application) []string {
	var names []string
	for _, node := range model.Children {
		names = append(names, node.Name)
	}
	return append(names, completionCommand, manCommand)
}

// flagsOf returns the flags that may follow a command.
func flagsOf(model *kong.Application, node *kong.Node) []*kong.Flag {
	flags := append([]*kong.Flag{}, model.Flags...)
	if node != nil {
		flags = append(flags, node.Flags...)
	}
	return flags
}

// spellings returns a flag as it may be typed.
func spellings(flag *kong.Flag) []string {
	names := []string{"--" + flag.Name}
	if flag.Short != 0 {
		names = append(names, "-"+string(flag.Short))
	}
	return names
}
