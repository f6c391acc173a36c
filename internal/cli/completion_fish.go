package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// completeFish prints the script for fish, one line for each command and flag.
func completeFish(w io.Writer, model *kong.Application) error {
	f := fish{name: model.Name}
	all := strings.Join(commands(model), " ")
	first := "not __fish_seen_subcommand_from " + all
	f.line(first, "-a", completionCommand, "-d", fishQuote("Print the completion script of a shell"))
	f.line(first, "-a", manCommand, "-d", fishQuote("Print the manual page"))
	f.line("__fish_seen_subcommand_from "+completionCommand, "-f", "-a", fishQuote(strings.Join(shells[:], " ")))
	for _, flag := range model.Flags {
		f.flag("", flag)
	}
	for _, node := range model.Children {
		f.line(first, "-a", node.Name, "-d", fishQuote(node.Help))
		seen := "__fish_seen_subcommand_from " + node.Name
		if list := firstWords(node); list != nil {
			f.line(seen, "-f", "-a", fishQuote(strings.Join(list, " ")))
		} else if len(node.Positional) == 0 {
			f.line(seen, "-f")
		}
		for _, flag := range shown(node) {
			f.flag(seen, flag)
			if node == model.DefaultCmd {
				f.flag(first, flag)
			}
		}
	}
	_, err := io.WriteString(w, f.text.String())
	return err
}

type fish struct {
	name string
	text strings.Builder
}

// line adds a completion that is offered under a condition; "" is always.
func (f *fish) line(condition string, parts ...string) {
	fmt.Fprintf(&f.text, "complete -c %s", f.name)
	if condition != "" {
		fmt.Fprintf(&f.text, " -n %s", fishQuote(condition))
	}
	fmt.Fprintf(&f.text, " %s\n", strings.Join(parts, " "))
}

func (f *fish) flag(condition string, flag *kong.Flag) {
	parts := []string{"-l", flag.Name}
	if flag.Short != 0 {
		parts = append(parts, "-s", string(flag.Short))
	}
	switch expected, list := value(flag); expected {
	case words: // on a line without the description, which fish would show beside each
		f.line(condition, slices.Concat(parts, []string{"-x", "-a", fishQuote(strings.Join(list, " "))})...)
	case file:
		parts = append(parts, "-r", "-F")
	case text:
		parts = append(parts, "-x")
	}
	f.line(condition, append(parts, "-d", fishQuote(flag.Help))...)
}

// fishQuote quotes text for fish. Within single quotes only quotes and backslashes are special.
func fishQuote(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(text) + "'"
}
