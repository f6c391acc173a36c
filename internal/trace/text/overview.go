package text

import (
	"fmt"
	"strings"
	"time"

	"gm/internal/trace/overview"
)

// Overview prints an overview of a trace.
func Overview(w *strings.Builder, o *overview.Overview) error {
	head(w, o)
	var events []string
	for _, e := range o.Events {
		events = append(events, fmt.Sprintf("%s %d", e.Op, e.Count))
	}
	if len(events) > 0 {
		list(w, "events", events)
	}
	for _, d := range o.Devices {
		fmt.Fprintf(w, "\ndevice %d\n", d.Ordinal)
		if d.Framework() {
			if err := showFramework(w, o, d); err != nil {
				return err
			}
		} else if d.Marked {
			line(w, "iterations", "%s", iterationsLine(d, 0))
		}
		if d.Driver != nil {
			if err := showDriver(w, o, d); err != nil {
				return err
			}
		}
	}
	return nil
}

// head prints the properties of a trace.
func head(w *strings.Builder, o *overview.Overview) {
	if o.Meta.Source != "" {
		line(w, "source", "%s", o.Meta.Source)
	}
	if o.Meta.Command != "" {
		line(w, "command", "%s", o.Meta.Command)
	}
	if o.Meta.Incomplete != "" {
		line(w, "incomplete", "%s", o.Meta.Incomplete)
	}
	if o.Meta.AllocConf != "" {
		line(w, "settings", "%s", o.Meta.AllocConf)
	}
	if o.Unrecorded() {
		line(w, "history", "none: only what was live. Call torch.cuda.memory._record_memory_history() in the program, before it allocates")
	}
	line(w, "rows", "%d in %s", o.Rows, time.Duration(o.EndNS-o.StartNS).Round(time.Millisecond))
}
