package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

// completionCommand is the word that makes a tool print the completion script for a shell instead of doing its work.
const completionCommand = "completion"

// complete prints a completion script for bash, or zsh through its emulation of bash: commands, flags, and
// file names for all else.
func complete(w io.Writer, shell string, model *kong.Application) error {
	switch shell {
	case "bash":
	case "zsh":
		fmt.Fprintln(w, "autoload -U +X bashcompinit && bashcompinit")
	default:
		return Usage("completion for %q: expected bash or zsh", shell)
	}
	var commands []string
	cases := &strings.Builder{}
	for _, node := range model.Children {
		commands = append(commands, node.Name)
		fmt.Fprintf(cases, "        %s) words=%q ;;\n", node.Name, strings.Join(flagNames(model.Node, node), " "))
	}
	_, err := fmt.Fprintf(w, `_%[1]s() {
    local word=${COMP_WORDS[COMP_CWORD]} words=
    case ${COMP_WORDS[1]} in
%[2]s        *) words=%[3]q ;;
    esac
    COMPREPLY=($(compgen -W "$words" -- "$word"))
    [[ $word == -* ]] || COMPREPLY+=($(compgen -f -- "$word"))
}
complete -o filenames -F _%[1]s %[1]s
`, model.Name, cases.String(), strings.Join(append(commands, flagNames(model.Node, model.DefaultCmd)...), " "))
	return err
}

// flagNames returns the flags of nodes, which may be nil, as they are typed.
func flagNames(nodes ...*kong.Node) []string {
	var names []string
	for _, node := range nodes {
		if node == nil {
			continue
		}
		for _, flag := range node.Flags {
			names = append(names, "--"+flag.Name)
		}
	}
	return names
}
