package cli

import (
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// The words that make a tool print its completion script for a shell, or its manual page.
const (
	completionCommand = "completion"
	manCommand        = "man"
)

var shells = [...]string{"bash", "zsh", "fish"}

// complete prints a completion script for commands, flags, values of flags that are known, and file names.
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

// expects is the kind of value that a flag takes.
type expects int

const (
	nothing expects = iota
	words           // one of a list
	file
	text // without completion
)

// value returns the kind of value that a flag takes, and the list of words for kind words.
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

// firstWords returns the words that the first argument of a command is one of; none if it is something else.
func firstWords(node *kong.Node) []string {
	if len(node.Positional) == 0 || node.Positional[0].Enum == "" {
		return nil
	}
	return node.Positional[0].EnumSlice()
}

// commands returns the names of the tool's commands, followed by completion and man.
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
		flags = append(flags, shown(node)...)
	}
	return flags
}

// shown returns the flags of a command but for hidden ones, which are there to say why they are not.
func shown(node *kong.Node) []*kong.Flag {
	return slices.DeleteFunc(slices.Clone(node.Flags), func(flag *kong.Flag) bool { return flag.Hidden })
}

// spellings returns the ways to type a flag.
func spellings(flag *kong.Flag) []string {
	names := []string{"--" + flag.Name}
	if flag.Short != 0 {
		names = append(names, "-"+string(flag.Short))
	}
	return names
}
