package exporter

import (
	"cmp"

	"gm/internal/trace/importer"
)

// hostProcess is added to the number of a process in a profile: the numbers below are those of GPUs. Linux has fewer processes.
const hostProcess = 1 << 22

// spans writes what ran in the profile: on a GPU below its memory, a thread for each stream, and processes of the host apart. What is not
// in the time of the trace is cut off.
func (t *timeline) spans() error {
	if t.profile == nil {
		return nil
	}
	named, n := map[[2]int64]bool{}, 0
	err := t.profile.Spans(func(s importer.Span) error {
		begin, end := max(s.TimeNS, t.survey.start), min(s.TimeNS+s.LengthNS, t.survey.end)
		if begin > end {
			return nil
		}
		n++
		process, thread := s.Process+hostProcess, s.Thread
		if s.GPU {
			process, thread = s.Process+1, s.Thread+1 // thread 0 is that of marks
		}
		if key := [2]int64{process, thread}; !named[key] {
			named[key] = true
			t.name(process, thread, &s)
		}
		t.event(`"ph":"X","cat":%s,"pid":%d,"tid":%d,"ts":%s,"dur":%d.%03d,"name":%s,"args":%s`, quote(s.Category), process, thread,
			t.at(begin), (end-begin)/nsPerUS, (end-begin)%nsPerUS, quote(s.Name), cmp.Or(string(s.Args), "{}"))
		return nil
	})
	if err == nil && n == 0 {
		t.warn("nothing in the profile is in the time of the trace: are they of the same run?")
	}
	return err
}

// name names a thread that is seen for the first time, and the process of the host that it is of.
func (t *timeline) name(process, thread int64, s *importer.Span) {
	if s.GPU {
		t.event(`"ph":"M","pid":%d,"tid":%d,"name":"thread_name","args":{"name":"stream %d"}`, process, thread, s.Thread)
		return
	}
	t.event(`"ph":"M","pid":%d,"name":"process_name","args":{"name":"process %d"}`, process, s.Process)
}
