package main

import (
	"errors"
	"fmt"
	"io"
	"os/user"
	"strconv"
	"time"

	"gm/internal/cli"
	"gm/internal/report"
	"gm/internal/swap/server/wire"
	"gm/internal/units"
)

type ctlCmd struct {
	Action string `arg:"" enum:"list,sleep,wake,drop" help:"list: show the jobs and what is shared. sleep: a job's memory goes to the host; its next launch wakes it. wake: it comes back, once there is room. drop: memory is no longer shared by a key."`
	Job    string `arg:"" optional:"" help:"A process id, or the name of gmswap run --name; for drop a key."`
	JSON   bool   `name:"json" help:"Print the list as JSON."`
	Hold   bool   `help:"With sleep: hold the job asleep until gmswap ctl wake, also if it launches something, to pause one that computes."`
	Socket string `placeholder:"FILE" help:"The server's socket, as for gmswap serve."`
}

// Help implements kong.HelpProvider.
func (cmd *ctlCmd) Help() string { return "Example: gmswap ctl sleep train" }

// Run implements the command.
func (cmd *ctlCmd) Run(c *cli.Context) error {
	switch {
	case cmd.Action == "list" && cmd.Job != "":
		return cli.Usage("list shows all jobs: it takes none")
	case cmd.Action == "drop" && cmd.Job == "":
		return cli.Usage("drop which key: gmswap ctl list shows them")
	case cmd.Action != "list" && cmd.Job == "":
		return cli.Usage("%s which job: expected a process id or a name, which gmswap ctl list shows", cmd.Action)
	case cmd.Hold && cmd.Action != "sleep" || cmd.JSON && cmd.Action != "list":
		return cli.Usage("--hold is for sleep, and --json for list")
	}
	switch m := (wire.Message{}); cmd.Action {
	case "sleep":
		m.Kind = wire.CtlSleep
		if cmd.Hold {
			m.Amount = 1
		}
		return cmd.move(c, &m, "to the host")
	case "wake":
		m.Kind = wire.CtlWake
		return cmd.move(c, &m, "from the host")
	case "drop":
		return cmd.drop(c)
	}
	return cmd.list(c)
}

// move has the server move memory, and says how much that was.
func (cmd *ctlCmd) move(c *cli.Context, m *wire.Message, where string) error {
	m.SetName(cmd.Job)
	answers, err := cmd.ask(m)
	if err != nil {
		return err
	}
	end := answers[len(answers)-1]
	_, err = fmt.Fprintf(c.Out, "%v %s in %.3f s\n", units.Bytes(end.Amount), where, time.Duration(end.Took).Seconds())
	return err
}

// drop has the server forget memory that is shared by a key.
func (cmd *ctlCmd) drop(c *cli.Context) error {
	m := wire.Message{Kind: wire.CtlDrop}
	m.SetText(cmd.Job)
	answers, err := cmd.ask(&m)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.Out, "%v are free once nobody has them open\n", units.Bytes(answers[len(answers)-1].Amount))
	return err
}

// ask sends a message to the server, and returns what it answers: the jobs, if they were asked for, and the end.
func (cmd *ctlCmd) ask(m *wire.Message) (answers []wire.Message, err error) {
	conn, err := wire.Dial(pathOf(cmd.Socket))
	if err != nil {
		return nil, fmt.Errorf("%w; start one with gmswap serve", err)
	}
	defer conn.Close()
	if err := conn.Send(m); err != nil {
		return nil, fmt.Errorf("ask the memory server: %w", err)
	}
	for {
		answer, err := conn.Receive()
		if err != nil {
			return nil, fmt.Errorf("the memory server does not answer: %w", err)
		}
		answers = append(answers, answer)
		if answer.Kind != wire.End {
			continue
		}
		if text := answer.TextText(); text != "" {
			return nil, errors.New(text)
		}
		return answers, nil
	}
}

// servedJob is a job, as JSON.
type servedJob struct {
	PID       int          `json:"pid"`
	Name      string       `json:"name"`
	User      string       `json:"user"`
	State     string       `json:"state"`
	Why       string       `json:"why,omitempty"`
	IdleNS    int64        `json:"idle_ns"`
	HostBytes int64        `json:"host_pinned_bytes"`
	Quota     int64        `json:"quota_bytes,omitempty"`
	Uses      *int64       `json:"uses,omitempty"` // of what is shared
	Cards     []servedCard `json:"cards"`
}

type servedCard struct {
	PCI         string `json:"pci"`
	TotalBytes  int64  `json:"total_bytes"`
	FreeBytes   int64  `json:"free_bytes"`
	DeviceBytes int64  `json:"device_bytes"`
	AwayBytes   int64  `json:"away_bytes"`
}

func (cmd *ctlCmd) list(c *cli.Context) error {
	answers, err := cmd.ask(&wire.Message{Kind: wire.List})
	if err != nil {
		return err
	}
	jobs := []servedJob{}
	for i := range answers[:len(answers)-1] {
		if m := &answers[i]; m.Kind == wire.Shared {
			jobs = append(jobs, servedKey(m))
		} else {
			jobs = append(jobs, servedJobOf(m))
		}
	}
	if cmd.JSON {
		return cli.WriteJSON(c.Out, jobs)
	}
	return writeJobs(c.Out, jobs)
}

func servedJobOf(m *wire.Message) servedJob {
	j := servedJob{
		PID: int(m.PID), Name: m.NameText(), User: strconv.Itoa(int(m.UID)), State: m.State.String(), Why: m.TextText(), IdleNS: m.Idle,
		HostBytes: m.Pinned, Quota: m.Amount, Cards: []servedCard{},
	}
	if u, err := user.LookupId(j.User); err == nil {
		j.User = u.Username
	}
	for _, c := range m.CardList() {
		j.Cards = append(j.Cards, servedCard{c.BusText(), c.Total, c.Free, c.Here, c.Away})
	}
	return j
}

// servedKey is memory that is shared by a key, in a row like that of a job.
func servedKey(m *wire.Message) servedJob {
	j := servedJobOf(m)
	j.Name, j.State, j.Uses, j.Quota = m.TextText(), "shared", &m.Amount, 0
	j.Why = "open " + units.Times(m.Amount)
	return j
}

// writeJobs writes a line for each job and card.
func writeJobs(w io.Writer, jobs []servedJob) error {
	t := &report.Table{Titles: []string{"pid", "name", "user", "state", "idle", "card", "on card", "on host", "pinned", "quota", "note"}}
	for _, j := range jobs {
		quota := "-"
		if j.Quota > 0 {
			quota = units.Bytes(j.Quota).String()
		}
		cards := j.Cards
		if len(cards) == 0 {
			cards = []servedCard{{PCI: "-"}}
		}
		for _, c := range cards {
			t.Add(strconv.Itoa(j.PID), j.Name, j.User, j.State, time.Duration(j.IdleNS).Round(time.Second).String(), c.PCI,
				units.Bytes(c.DeviceBytes).String(), units.Bytes(c.AwayBytes).String(), units.Bytes(j.HostBytes).String(), quota, j.Why)
		}
	}
	return t.Write(w)
}
