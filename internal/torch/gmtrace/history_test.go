package gmtrace

import (
	"strings"
	"testing"
)

// TestOwnHistory lets programs use the history themselves.
func TestOwnHistory(t *testing.T) {
	t.Parallel()
	for name, program := range map[string]string{
		"off": `
torch.cuda.memory._record_memory_history(enabled=None)
step(500)
`,
		"smaller ring": `
torch.cuda.memory._record_memory_history(max_entries=10, stacks="python")
for i in range(10): step(200)
assert "step" in str(torch.cuda.memory._snapshot()["device_traces"][0][-1]["frames"])
torch.cuda.memory._record_memory_history(None)
step(200)
`,
		"larger ring": `
for i in range(10): step(200)
torch.cuda.memory._record_memory_history(context=None)
for i in range(10): step(400)
assert len(torch.cuda.memory._snapshot()["device_traces"][0]) > 10000
`,
		"cleared": `
torch.cuda.memory._record_memory_history("all", "all", "all", 10, None, True)
for i in range(10): step(200)
torch.cuda.memory._record_memory_history("state", clear_history=True, max_entries=10)
step(200)
`,
		"as of old": `
torch.cuda.memory._record_memory_history(True, trace_alloc_max_entries=10, trace_alloc_record_context=True)
for i in range(10): step(200)
torch.cuda.memory._record_memory_history(False)
step(200)
`,
		"dumped": `
for i in range(10):
    step(200)
    torch.cuda.memory._dump_snapshot(os.devnull)
`,
		"wrong": `
for arguments in ({"enabled": "always"}, {"context": "nothing"}, {"stacks": "nothing"}):
    try: torch.cuda.memory._record_memory_history(**arguments)
    except RuntimeError as e: step(100)
    else: raise AssertionError(arguments)
try: torch.cuda.memory._record_memory_history(no_such_argument=1)
except TypeError: step(100)
else: raise AssertionError("no error")
`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSession(t, "", "GMTRACE_HISTORY=4000")
			r := s.ok(busy + "step(100)\n" + program + "step(100)\n")
			s.compare(r.pid, 0)
		})
	}
}

// TestOwnHistoryFirst asks for more before CUDA is initialised, and has it after the steps to record, too.
func TestOwnHistoryFirst(t *testing.T) {
	t.Parallel()
	s := newSession(t, "", "GMTRACE_STEPS=0:1")
	r := s.ok(busy + `
torch.cuda.memory._record_memory_history(stacks="python", max_entries=100)
step(100)
optimizer.step()
step(100)
trace = torch.cuda.memory._snapshot()["device_traces"][0]
print(trace[-1]["action"], "frames" in trace[-1], len(trace) > 200)
torch.cuda.memory._record_memory_history(None)
print(len(torch.cuda.memory._snapshot()["device_traces"][0]))
`)
	if r.stdout != "free_completed True True\n0\n" {
		t.Errorf("printed %q", r.stdout)
	}
	all := s.recorded(r.pid)[0]
	if n := len(all); n < 200 || !strings.Contains(all[n/2].Stack, "step") {
		t.Errorf("%d entries", n)
	}
}
