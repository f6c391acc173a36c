package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

// bashScript is the function that bash calls. Bash splits "--flag=value" into three words.
const bashScript = `_%[1]s() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=%[2]s flags=
    if [[ $word == = ]]; then
        word=
    elif [[ $before == = ]]; then
        before=${COMP_WORDS[COMP_CWORD-2]}
    fi
    case ${COMP_WORDS[1]} in
        %[3]s) ((COMP_CWORD > 1)) && command=${COMP_WORDS[1]} ;;
    esac
    case "$command $before" in
%[4]s    esac
    case $command in
%[5]s    esac
    if [[ $word == -* ]]; then
        COMPREPLY=($(compgen -W "$flags" -- "$word"))
        return
    fi
    COMPREPLY=()
    ((COMP_CWORD > 1)) || COMPREPLY=($(compgen -W %[6]q -- "$word"))
    local IFS=$'\n'
    COMPREPLY+=($(compgen -f -- "$word"))
}
complete -o filenames -F _%[1]s %[1]s
`

// completeBash prints the script for bash, which zsh also understands.
func completeBash(w io.Writer, model *kong.Application) error {
	var values, flags strings.Builder
	add := func(command string, node *kong.Node) {
		var names []string
		for _, flag := range flagsOf(model, node) {
			names = append(names, spellings(flag)...)
			values.WriteString(bashValue(command, flag))
		}
		fmt.Fprintf(&flags, "        %s) flags=%q ;;\n", command, strings.Join(names, " "))
	}
	for _, node := range model.Children {
		add(node.Name, node)
		if list := firstWords(node); list != nil {
			fmt.Fprintf(&values, "        %q) COMPREPLY=($(compgen -W %q -- \"$word\")); return ;;\n", node.Name+" "+node.Name, strings.Join(list, " "))
		}
	}
	fmt.Fprintf(&values, "        %q) COMPREPLY=($(compgen -W %q -- \"$word\")); return ;;\n",
		completionCommand+" "+completionCommand, strings.Join(shells[:], " "))
	standard := "none"
	if model.DefaultCmd != nil {
		standard = model.DefaultCmd.Name
	} else {
		add(standard, nil)
	}
	all := commands(model)
	_, err := fmt.Fprintf(w, bashScript, model.Name, standard, strings.Join(all, "|"), values.String(), flags.String(), strings.Join(all, " "))
	return err
}

// bashValue returns the branch of a case that completes the value of a flag; "" if the value is a file.
func bashValue(command string, flag *kong.Flag) string {
	var patterns []string
	for _, name := range spellings(flag) {
		patterns = append(patterns, fmt.Sprintf("%q", command+" "+name))
	}
	expected, list := value(flag)
	switch expected {
	case words:
		return fmt.Sprintf("        %s) COMPREPLY=($(compgen -W %q -- \"$word\")); return ;;\n", strings.Join(patterns, "|"), strings.Join(list, " "))
	case text:
		return fmt.Sprintf("        %s) COMPREPLY=(); return ;;\n", strings.Join(patterns, "|"))
	}
	return ""
}
