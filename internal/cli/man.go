package cli

import (
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	"github.com/alecthomas/kong"
)

// manual is a manual page under construction, in roff's man macros.
type manual struct {
	model    *kong.Application
	examples []string
	text     strings.Builder
	begun    int // where the text of the section begins
}

const exampleMark = "Example: "

// printManual prints the manual page of a tool, made from its --help.
func printManual(w io.Writer, model *kong.Application, help string, info *debug.BuildInfo) error {
	m := &manual{model: model}
	name := model.Name
	fmt.Fprintf(&m.text, ".TH %s 1 %q %q %q\n", strings.ToUpper(name), built(info), name+" "+version(info), "gm")
	summary, rest, _ := strings.Cut(help, "\n\n")
	first := summary[:strings.IndexAny(summary+":", ":.")]
	m.section("NAME")
	m.line(name + " - " + strings.ToLower(first[:1]) + first[1:])
	m.section("SYNOPSIS")
	m.synopsis()
	m.section("DESCRIPTION")
	m.paragraphs(summary)
	m.paragraphs(rest)
	m.section("COMMANDS")
	for _, node := range model.Children {
		m.command(node)
	}
	m.section("OPTIONS")
	for _, flag := range model.Flags {
		m.flag(flag)
	}
	m.section("EXIT STATUS")
	for _, s := range statuses {
		m.item(s[0])
		m.line(s[1])
	}
	m.section("EXAMPLES")
	for _, text := range m.examples {
		m.apart()
		m.text.WriteString(".nf\n" + roff(text) + "\n.fi\n")
	}
	m.section("SEE ALSO")
	m.line("README.md and docs/" + model.Name + ".md in share/doc/gm, where gm is installed.")
	_, err := io.WriteString(w, m.text.String())
	return err
}

// statuses is the manual page's text on exit statuses.
var statuses = [...][2]string{
	{"0", "Done."},
	{"1", "It failed, or what was asked for is not possible, or the answer is no."},
	{"2", "Wrong usage, or a check that could not find the answer."},
	{"128+N", "Ended by signal N."},
	{"other", "That of the program which was run, by a command that runs one."},
}

func (m *manual) section(title string) {
	fmt.Fprintf(&m.text, ".SH %s\n", title)
	m.begun = m.text.Len()
}

// apart begins a paragraph, unless a section has just begun.
func (m *manual) apart() {
	if m.text.Len() > m.begun {
		m.text.WriteString(".PP\n")
	}
}

// item begins a paragraph with a tag.
func (m *manual) item(tag string) {
	m.text.WriteString(".TP\n")
	m.line(tag)
}

// line adds plain text in lines of up to lineWidth characters. roff joins the lines.
func (m *manual) line(text string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+len(word) >= lineWidth {
			m.text.WriteString(roff(line) + "\n")
			line = ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	m.text.WriteString(roff(line) + "\n")
}

const lineWidth = 72

func (m *manual) synopsis() {
	for i, node := range m.model.Children {
		if i > 0 {
			m.text.WriteString(".br\n")
		}
		command := node.Name
		if node == m.model.DefaultCmd {
			command = "[" + command + "]"
		}
		words := []string{bold(m.model.Name), bold(command), "[" + italic("flags") + "]"}
		for _, arg := range node.Positional {
			words = append(words, roff(arg.Summary()))
		}
		m.text.WriteString(strings.Join(words, " ") + "\n")
	}
}

// paragraphs adds text, whose paragraphs are separated by empty lines, and keeps the examples for later. A paragraph that begins with a
// word and two or more spaces is an item of a list.
func (m *manual) paragraphs(text string) {
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		paragraph = strings.Join(strings.Fields(strings.ReplaceAll(paragraph, "  ", " \x00 ")), " ")
		if example, ok := strings.CutPrefix(paragraph, exampleMark); ok {
			m.examples = append(m.examples, strings.ReplaceAll(example, " \x00", ""))
			continue
		}
		word, about, ok := strings.Cut(paragraph, " \x00")
		switch about = strings.TrimSpace(strings.ReplaceAll(about, "\x00", "")); {
		case ok && !strings.Contains(word, " "):
			m.item(word)
			m.line(about)
		case word != "":
			m.apart()
			m.line(strings.TrimSpace(word + " " + about))
		}
	}
}

func (m *manual) command(node *kong.Node) {
	fmt.Fprintf(&m.text, ".SS %s\n", roff(node.Name))
	m.line(node.Help)
	m.paragraphs(node.Detail)
	for _, arg := range node.Positional {
		m.text.WriteString(".TP\n" + italic(arg.Name) + "\n")
		m.line(arg.Help)
	}
	for _, flag := range shown(node) {
		m.flag(flag)
	}
}

func (m *manual) flag(flag *kong.Flag) {
	tag := bold("--" + flag.Name)
	if flag.Short != 0 {
		tag = bold("-"+string(flag.Short)) + ", " + tag
	}
	if !flag.IsBool() && !flag.IsCounter() {
		tag += "=" + italic(flag.FormatPlaceHolder())
	}
	m.text.WriteString(".TP\n" + tag + "\n")
	m.line(flag.Help)
}

func bold(text string) string { return `\fB` + roff(text) + `\fR` }

func italic(text string) string { return `\fI` + roff(text) + `\fR` }

// roff escapes text, so that nothing in it is a request or an escape sequence.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", "\\`", "^", `\(ha`, "~", `\(ti`, "\n", " ").Replace(text)
	if strings.HasPrefix(text, ".") {
		text = `\&` + text
	}
	return text
}
