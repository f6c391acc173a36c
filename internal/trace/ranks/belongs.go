package ranks

import (
	"slices"
	"strings"

	"gm/formats/trace"
	"gm/internal/units"
)

// belongs is what the traces of a job have in common.
type belongs struct {
	world   int64
	command string
	source  string
}

func (m *Member) job() belongs {
	return belongs{m.Meta.WorldSize, commandOfJob(m.Meta.Command), sourceOfJob(&m.Meta)}
}

func (b belongs) String() string {
	var all []string
	if b.world > 0 {
		all = append(all, "of "+units.Count(b.world, "rank"))
	}
	for _, what := range []string{b.command, b.source} {
		if what != "" {
			all = append(all, what)
		}
	}
	if len(all) == 0 {
		return "of an unknown number of ranks"
	}
	return strings.Join(all, ", ")
}

// commandOfJob is a command line without the options by which launchers, such as DeepSpeed's and torch.distributed.launch, tell a process its rank.
func commandOfJob(line string) string {
	ofRank := []string{"--local_rank", "--local-rank", "--rank", "--node_rank", "--node-rank"}
	var kept []string
	words := strings.Split(line, " ")
	for i := 0; i < len(words); i++ {
		name, _, joined := strings.Cut(words[i], "=")
		switch {
		case !slices.Contains(ofRank, name):
			kept = append(kept, words[i])
		case !joined:
			i++ // its value
		}
	}
	return strings.Join(kept, " ")
}

// synthetic begins the source of a trace of gmtrace synth.
const synthetic = "synthetic: "

// sourceOfJob is what a trace was made from, without what may differ between ranks: their place, and for synthetic ones the work that each is given.
// A trace that was imported has the name of a file of its own there, so nothing is left of that.
func sourceOfJob(m *trace.Meta) string {
	spec, ok := strings.CutPrefix(m.Source, synthetic)
	if !ok && m.Command != "" {
		return m.Source
	} else if !ok {
		return ""
	}
	spec, strategy, _ := strings.Cut(spec, " ")
	fields := slices.DeleteFunc(strings.Split(spec, ","), func(field string) bool {
		name, _, _ := strings.Cut(field, "=")
		return slices.Contains([]string{"rank", "stage", "batch", "seq"}, name)
	})
	return strings.TrimSpace(synthetic + strings.Join(fields, ",") + " " + strategy)
}
