package cli

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/alecthomas/kong"
)

// listTitle is the title of a list at the end of a help text, such as "Policies:". Each paragraph after it is an item: a name, a colon or spaces,
// and what it is.
var listTitle = regexp.MustCompile(`(?:^|\n\n)[A-Z][a-z]+:\n\n`)

// cutLists parts a help text from the lists at its end.
func cutLists(text string) (rest, lists string) {
	at := listTitle.FindStringIndex(text)
	if at == nil {
		return text, ""
	}
	return text[:at[0]], strings.TrimLeft(text[at[0]:], "\n")
}

// lists are the lists of a tool's help texts: usage and flags come before them.
type lists struct {
	tool     string
	commands map[*kong.Node]string
}

// cut takes the lists out of the help texts of the commands.
func (l *lists) cut(model *kong.Application) {
	l.commands = map[*kong.Node]string{}
	for _, node := range model.Children {
		node.Detail, l.commands[node] = cutLists(node.Detail)
	}
}

// print is a printer of help.
func (l *lists) print(options kong.HelpOptions, ctx *kong.Context) error {
	if err := kong.DefaultHelpPrinter(options, ctx); err != nil {
		return err
	}
	list := l.tool
	if node := ctx.Selected(); node != nil {
		list = l.commands[node]
	}
	return writeLists(ctx.Stdout, list)
}

// writeLists prints lists as lines of two columns.
func writeLists(w io.Writer, list string) error {
	var out strings.Builder
	width := 0
	for paragraph := range strings.SplitSeq(list, "\n\n") {
		if name, _, ok := item(paragraph); ok {
			width = max(width, len(name))
		}
	}
	for paragraph := range strings.SplitSeq(list, "\n\n") {
		name, about, ok := item(paragraph)
		if !ok {
			if paragraph != "" {
				out.WriteString("\n" + paragraph + "\n")
			}
			continue
		}
		fmt.Fprintf(&out, "  %-*s  %s\n", width, name, wrapped(about, helpWidth-width-4, width+4))
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// helpWidth is how wide lists are, in characters: as wide as kong's help where it does not know the terminal.
const helpWidth = 80

// item parts an item of a list into its name and what it is.
func item(paragraph string) (name, about string, ok bool) {
	name, about, ok = strings.Cut(paragraph, " ")
	return strings.TrimSuffix(name, ":"), strings.TrimSpace(about), ok
}

// wrapped breaks text into lines of some width, with an indent before all but the first.
func wrapped(text string, width, indent int) string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines = append(lines, line)
			line = ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return strings.Join(append(lines, line), "\n"+strings.Repeat(" ", indent))
}
