package cli

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
)

// usageGrammar has a flag of each kind of value.
type usageGrammar struct {
	Compare usageCmd `cmd:"" default:"withargs" help:"Compare."`
	Verify  usageCmd `cmd:"" help:"Verify."`
	Needs   struct {
		Output string `required:"" placeholder:"FILE" help:"A file."`
	} `cmd:"" help:"Needs a flag."`
}

type usageCmd struct {
	File  string         `arg:"" help:"A file."`
	Name  string         `short:"n" placeholder:"NAME" help:"Text."`
	Plain string         `help:"Text without a placeholder."`
	Mode  string         `enum:",fast,slow" default:"" help:"One of some."`
	N     int            `help:"A number."`
	Seed  uint64         `help:"A number from 0."`
	Share float64        `help:"A share."`
	Time  time.Duration  `help:"A time."`
	Many  []string       `placeholder:"A,B" help:"A list."`
	Of    map[string]int `placeholder:"TAG=SIZE" help:"Numbers by tags."`
	Quiet bool           `help:"Nothing."`
}

// TestWrongUsage gives command lines with a slip in them.
func TestWrongUsage(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("verifx", nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"x --name":        "--name needs a value: NAME",
		"x -n":            "--name needs a value: NAME",
		"x --plain":       "--plain needs a value",
		"x --mode":        "--mode needs a value: fast, slow",
		"x --many":        "--many needs a value: A,B",
		"x --name --n":    "--name needs a value: NAME; --n is a flag",
		"x --mode fats":   `--mode: "fats" is none of "fast", "slow"`,
		"x --n=1x":        `--n: "1x" is no whole number`,
		"x --seed=-1":     `--seed: "-1" is no whole number from 0`,
		"x --share=half":  `--share: "half" is no number`,
		"x --time=10":     `--time: "10" is no time such as 10s or 1m30s`,
		"x --of weights":  `--of: "weights" is not of this form: TAG=SIZE`,
		"x --of a=b":      `--of: "b" is not of this form: TAG=SIZE`,
		"needs":           "--output=FILE must be given",
		"x --quiet=maybe": `--quiet takes no value, not "maybe"`,
		"x y":             "one argument too many: y",
		"verify":          "<file> is missing",
		"x --nmae=y":      `unknown flag --nmae, did you mean "--name"?`,
		"verfiy x":        `there is neither a command nor a file verfiy, did you mean "verify"?`,
		"ver x":           `there is neither a command nor a file ver, did you mean "verify"?`,
		"comparee":        `there is neither a command nor a file comparee, did you mean "compare"?`,
		"verifx":          "", // it is a file
		"job.parquet":     "",
		"--n=1 verfiy":    "",
	} {
		var grammar usageGrammar
		parser, err := kong.New(&grammar, kong.Name("test"), kong.Exit(func(int) {}))
		if err != nil {
			t.Fatal(err)
		}
		args := strings.Fields(line)
		got := typo(args, parser.Model)
		if got == nil {
			if _, err := parser.Parse(args); err != nil {
				got = mend(err, parser.Model)
			}
		}
		if got == nil && want != "" || got != nil && got.Error() != want {
			t.Errorf("%q: %v, want %q", line, got, want)
		}
	}
}

func TestDistance(t *testing.T) {
	for pair, want := range map[string]int{"a a": 0, "show show": 0, "show shwo": 1, "show sho": 1, "show shows": 1, "tune tuna": 1, "plan solve": 4, "ab ba": 1} {
		a, b, _ := strings.Cut(pair, " ")
		if distance(a, b) != want || distance(b, a) != want {
			t.Errorf("%s: %d and %d, want %d", pair, distance(a, b), distance(b, a), want)
		}
	}
}
