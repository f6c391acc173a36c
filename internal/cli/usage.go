package cli

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// mending is an error of the parser, and how it is said to users.
type mending struct {
	says *regexp.Regexp
	text string // $1 and so on are what the groups of the expression match
}

// mendings are the errors of the parser that speak of its tokens.
var mendings = [...]mending{
	{regexp.MustCompile(`^(\S+): (?:missing value, expecting .*|expected .* value but got "EOL" \(<EOL>\))$`), `$1 needs a value$placeholder`},
	{regexp.MustCompile(`^(\S+): expected .* value but got "(.*)" \((?:long|short) flag\).*$`), `$1 needs a value$placeholder; $2 is a flag`},
	{regexp.MustCompile(`^(\S+): expected (?:a valid \d+ bit|an) int but got "(.*?)".*$`), `$1: "$2" is no whole number`},
	{regexp.MustCompile(`^(\S+): expected a valid \d+ bit uint but got "(.*)"$`), `$1: "$2" is no whole number from 0`},
	{regexp.MustCompile(`^(\S+): expected a float but got "(.*?)".*$`), `$1: "$2" is no number`},
	{regexp.MustCompile(`^(\S+): expected duration but got "(.*?)".*$`), `$1: "$2" is no time such as 10s or 1m30s`},
	{regexp.MustCompile(`^(\S+): (?:expected "<key>=<value>" but got|invalid map value) "(.*)"$`), `$1: "$2" is not of this form$placeholder`},
	{regexp.MustCompile(`^missing flags: (.*)$`), `$1 must be given`},
	{regexp.MustCompile(`^(\S+): bool value must be .* but got "(.*)"$`), `$1 takes no value, not "$2"`},
	{regexp.MustCompile(`^(\S+) must be one of (?:"",)?(.*) but got "(.*)"$`), `$1: "$3" is none of $2`},
	{regexp.MustCompile(`^expected "(<.*>)"$`), `$1 is missing`},
}

// mend returns an error of the parser in words for users.
func mend(err error, model *kong.Application) error {
	var parse *kong.ParseError
	if !errors.As(err, &parse) {
		return err
	}
	text := err.Error()
	selected := parse.Context.Selected()
	if rest, ok := strings.CutPrefix(text, "unexpected argument "); ok {
		if selected == nil {
			if info, err := os.Stat(rest); err == nil {
				what := "file"
				if info.IsDir() {
					what = "folder"
				}
				return fmt.Errorf("%s is a %s: name a command before it: %s", rest, what, strings.Join(commands(model), ", "))
			}
			word, _, _ := strings.Cut(rest, ", did you mean ")
			return errors.New("unknown command " + word + meant(word, model))
		}
		return errors.New("one argument too many: " + rest)
	}
	if selected == nil && strings.HasPrefix(text, "expected one of ") {
		return fmt.Errorf("name a command: %s", strings.Join(commands(model), ", "))
	}
	for _, m := range mendings {
		found := m.says.FindStringSubmatchIndex(text)
		if found == nil {
			continue
		}
		template := strings.Replace(m.text, "$placeholder", placeholder(parse.Context, text[found[2]:found[3]]), 1)
		said := string(m.says.ExpandString(nil, template, text, found))
		return errors.New(strings.ReplaceAll(said, `","`, `", "`))
	}
	return err
}

// placeholder says what the value of a flag looks like, "" if there is nothing to say.
func placeholder(ctx *kong.Context, name string) string {
	for _, flag := range ctx.Flags() {
		if "--"+flag.Name != name && "-"+string(flag.Short) != name {
			continue
		}
		switch {
		case flag.Enum != "":
			return ": " + strings.Join(noEmpty(flag.EnumSlice()), ", ")
		case flag.PlaceHolder != "":
			return ": " + strings.ReplaceAll(flag.PlaceHolder, "$", "$$")
		}
	}
	return ""
}

func noEmpty(all []string) []string {
	var some []string
	for _, s := range all {
		if s != "" {
			some = append(some, s)
		}
	}
	return some
}

// typo returns an error if the first word is a command with a slip in it. A tool with a default command would take it for a file.
func typo(args []string, model *kong.Application) error {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") || model.DefaultCmd == nil {
		return nil
	}
	if _, err := os.Stat(args[0]); err == nil {
		return nil
	}
	if slices.Contains(commands(model), args[0]) {
		return nil
	}
	if said := meant(args[0], model); said != "" {
		return errors.New("there is neither a command nor a file " + args[0] + said)
	}
	return nil
}

// meant asks whether a word was to be a command: one that begins or ends with it, or one with a slip in it. It is "" for no such command.
func meant(word string, model *kong.Application) string {
	all := commands(model)
	i := slices.IndexFunc(all, func(name string) bool {
		return len(word) >= leastPart && (strings.HasPrefix(name, word) || strings.HasSuffix(name, "-"+word))
	})
	if i < 0 {
		i = slices.IndexFunc(all, func(name string) bool {
			d := distance(word, name)
			return d <= maxSlips && d < (len(name)+1)/2
		})
	}
	if i < 0 {
		return ""
	}
	return fmt.Sprintf(", did you mean %q?", all[i])
}

// maxSlips is how many letters may differ between a command and what was written, and leastPart how many letters of it may be all.
const (
	maxSlips  = 2
	leastPart = 3
)

// distance returns how many letters must be added, removed, replaced or swapped with the next to make b from a (Damerau and Levenshtein, of
// optimal string alignment).
func distance(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(row[j]+1, last[j+1]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
