package server

import (
	"fmt"
	"io"
	"strings"

	"gm/internal/swap/server/wire"
)

// metric is a number of each job, or of each of its cards.
type metric struct {
	name, help string
	ofJob      func(m *wire.Message) float64 // nil: of its cards
	ofCard     func(c *wire.Card) int64
}

var metrics = []metric{
	{name: "gmswap_job_asleep", help: "1 while memory of the job is on the host.", ofJob: func(m *wire.Message) float64 {
		for _, c := range m.CardList() {
			if c.Away > 0 && m.State != wire.Storing {
				return 1
			}
		}
		return 0
	}},
	{name: "gmswap_job_waiting", help: "1 while the job waits for memory of a card.", ofJob: func(m *wire.Message) float64 {
		if m.State == wire.Waiting {
			return 1
		}
		return 0
	}},
	{name: "gmswap_job_idle_seconds", help: "Time since the job's last launch or copy.",
		ofJob: func(m *wire.Message) float64 { return float64(m.Idle) / 1e9 }},
	{name: "gmswap_job_host_pinned_bytes", help: "Pinned host memory that the job keeps for its sleep.",
		ofJob: func(m *wire.Message) float64 { return float64(m.Pinned) }},
	{name: "gmswap_job_device_bytes", help: "Memory of the job on a card.", ofCard: func(c *wire.Card) int64 { return c.Here }},
	{name: "gmswap_job_away_bytes", help: "Memory of the job that has left a card for the host.",
		ofCard: func(c *wire.Card) int64 { return c.Away }},
	{name: "gmswap_card_free_bytes", help: "Free memory of a card, as the job sees it.", ofCard: func(c *wire.Card) int64 { return c.Free }},
	{name: "gmswap_card_total_bytes", help: "Memory of a card.", ofCard: func(c *wire.Card) int64 { return c.Total }},
}

// WriteMetrics writes the accounts of all jobs as OpenMetrics text.
func (s *Server) WriteMetrics(w io.Writer) error {
	jobs := s.Jobs()
	var text strings.Builder
	for _, m := range metrics {
		fmt.Fprintf(&text, "# TYPE %s gauge\n# HELP %s %s\n", m.name, m.name, m.help)
		for i := range jobs {
			j := &jobs[i]
			labels := fmt.Sprintf("pid=\"%d\",uid=\"%d\",name=\"%s\"", j.PID, j.UID, escape(j.NameText()))
			if m.ofJob != nil {
				fmt.Fprintf(&text, "%s{%s} %g\n", m.name, labels, m.ofJob(j))
				continue
			}
			for _, c := range j.CardList() {
				fmt.Fprintf(&text, "%s{%s,pci=\"%s\"} %d\n", m.name, labels, escape(c.BusText()), m.ofCard(&c))
			}
		}
	}
	s.writeShares(&text)
	text.WriteString("# EOF\n")
	_, err := io.WriteString(w, text.String())
	return err
}

// writeShares writes the memory that is shared by keys. It is in no job's account.
func (s *Server) writeShares(text *strings.Builder) {
	const bytes, uses = "gmswap_shared_bytes", "gmswap_shared_uses"
	shares := s.Shares()
	fmt.Fprintf(text, "# TYPE %s gauge\n# HELP %s Memory of a card that is shared by a key.\n", bytes, bytes)
	for i := range shares {
		fmt.Fprintf(text, "%s{%s} %d\n", bytes, shareLabels(&shares[i]), shares[i].Cards[0].Here)
	}
	fmt.Fprintf(text, "# TYPE %s gauge\n# HELP %s Processes that have it open, each as often as it has.\n", uses, uses)
	for i := range shares {
		fmt.Fprintf(text, "%s{%s} %d\n", uses, shareLabels(&shares[i]), shares[i].Amount)
	}
}

func shareLabels(m *wire.Message) string {
	return fmt.Sprintf("uid=\"%d\",key=\"%s\",pci=\"%s\"", m.UID, escape(m.TextText()), escape(m.Cards[0].BusText()))
}

// escape makes a text the value of a label.
func escape(text string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(text)
}
