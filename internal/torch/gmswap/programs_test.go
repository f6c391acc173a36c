package gmswap

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// program is one of testdata/programs.py, and what the hook does with it.
type program struct {
	name    string
	planned int      // schedules that are made: two where steps that followed the first are timed; one more if later ones take another time
	steps   int      // 0: any number
	whole   bool     // nothing is recomputed
	says    []string // beside the usual
	unlike  bool     // no two steps are alike where the recorded ones move nothing: no schedule is made, and memory suffices without
}

// deviates is said of the first step that goes another way than a schedule.
func deviates(step string) []string {
	return []string{"gmswap: step " + step + " differs from the recorded one: "}
}

const unlike = "gmswap: no schedule: no two steps are alike; tensors are moved as they come"

var programs = []program{
	{name: "plain", planned: 2},
	{name: "accumulated", planned: 2},
	{name: "stateful", planned: 2},
	{name: "retained", planned: 2, says: deviates("3")},
	{name: "siamese", planned: 2},
	{name: "pipelined", whole: true, says: []string{unlike}, unlike: true},
	{name: "evaluated", planned: 2, says: deviates("8")},
	{name: "varied", planned: 3, says: deviates("5")},
	{name: "shaken", planned: 2, says: deviates("5")},
	{name: "unequal", whole: true, says: []string{unlike}, unlike: true},
	{name: "raised", planned: 1, says: deviates("7")},
	{name: "changed", planned: 1, whole: true, says: deviates("5"), unlike: true},
	{name: "inplace", planned: 2, whole: true},
	{name: "inner", planned: 2},
	{name: "numbers", planned: 2},
	{name: "late_source", planned: 2},
	{name: "dropped", planned: 2, says: deviates("3")},
	{name: "abandoned", planned: 2, says: deviates("6")},
	{name: "moved_parameters", planned: 2},
	{name: "late_change", planned: 2},
	{name: "temporary", planned: 2},
	{name: "streams", planned: 4, says: deviates("12")},
	{name: "overlapped", planned: 2},
	{name: "threads", planned: 2},
	{name: "forked", planned: 2},
	{name: "helpers", planned: 2, steps: 12},
	{name: "copies", planned: 2},
	{name: "own_hooks", planned: 2, says: []string{"gmswap: tensors saved under the program's own saved-tensor hooks are not moved"}},
	{name: "uncounted", planned: 2},
	{name: "parts", planned: 2},
	{name: "fsdp", planned: 2},
	{name: "resized", planned: 2},
}

// uncounted stands for a PyTorch that does not tell how many hold a storage: all is moved in steps that are recorded.
const uncounted = "STUB_TORCH_WITHOUT=torch._C._storage_Use_Count"

func (p *program) check(t *testing.T, how string, env ...string) {
	s := newSession(t)
	f, said := s.same(p.name, how, env...)
	if p.unlike && !slices.ContainsFunc(env, func(v string) bool { return strings.Contains(v, "_storage_Use_Count") }) {
		if s.says(said, []string{unlike}); f.Planned != 0 || f.Out != 0 {
			t.Errorf("the hook did %+v", f)
		}
		return
	}
	s.says(said, p.says)
	if p.steps != 0 && f.Steps != p.steps {
		t.Errorf("%d steps were seen, want %d", f.Steps, p.steps)
	}
	again := f.Planned == p.planned+1 && f.Steps > 30
	if !f.Served || f.Out == 0 || f.Back == 0 || f.Planned != p.planned && !again || (f.Remade == 0) != (p.whole || how == "offload") {
		t.Errorf("the hook did %+v", f)
	}
}

// TestPrograms trains with what is saved moved, by schedules that are made by hand. Losses and gradients are those without the hook.
func TestPrograms(t *testing.T) {
	for _, p := range programs {
		for _, how := range []string{"remake", "rows"} {
			for kind, env := range map[string][]string{"counted": nil, "uncounted": {uncounted}} {
				t.Run(p.name+" "+how+" "+kind, func(t *testing.T) {
					t.Parallel()
					p.check(t, how, env...)
				})
			}
		}
	}
	t.Run("plain offload", func(t *testing.T) { programs[0].check(t, "offload") })
}

// TestDevices has models on two devices. What is saved on each is moved, and the limit is one of each.
func TestDevices(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"spread", "replicated"} {
		for _, how := range []string{"offload", "remake", "rows"} {
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				f, _ := newSession(t).same(name, how)
				if len(f.Devices) != 2 || f.Devices[0] == 0 || f.Devices[1] == 0 {
					t.Errorf("the hook did %+v", f)
				}
			})
		}
		t.Run(name+" limited", func(t *testing.T) { limitedDevices(t, name+"_large") })
	}
}

// limitedDevices runs a program on two devices that would take more than the limit of each.
func limitedDevices(t *testing.T, name string) {
	const limit = 44 << 20
	without := newSession(t)
	without.want(name)
	if took := without.physical(); took <= 2*limit {
		t.Fatalf("without a limit it takes %d bytes", took)
	}
	s := newSession(t)
	f, said := s.same(name, "auto", fmt.Sprintf("GM_LIMIT=%d", limit), fmt.Sprintf("GMSWAP_DEVICE=%d", limit), "GMSWAP_HOST=1073741824")
	if len(f.Devices) != 2 || f.Devices[0] == 0 || f.Devices[1] == 0 {
		t.Errorf("the hook did %+v, and said %q", f, said)
	}
	if took := s.physical(); took > 2*limit {
		t.Errorf("it took %d bytes", took)
	}
}

// TestPeak has steps take more memory than those that were recorded. What is foreseen is what they take, to the byte: the policy recomputes
// nothing, as the tables that compare what is recomputed, 128 KiB each, are not foreseen.
func TestPeak(t *testing.T) {
	for _, device := range []int{864_000, 966_000, 1_016_000} {
		t.Run(fmt.Sprint(device), func(t *testing.T) {
			t.Parallel()
			s := newSession(t)
			f, said := s.same("stateful", "auto", "GMSWAP_POLICY=belady", fmt.Sprintf("GMSWAP_DEVICE=%d", device))
			s.says(said, nil)
			if f.Peak > device || f.Foreseen != f.Peak || f.Declined {
				t.Errorf("%+v", f)
			}
		})
	}
}

// TestSlow does so with copies that take long: nothing but the order of streams keeps contents.
func TestSlow(t *testing.T) {
	slow := []string{"plain", "retained", "varied", "shaken", "raised", "evaluated", "streams", "resized", "inplace", "abandoned"}
	for _, p := range programs {
		if !slices.Contains(slow, p.name) {
			continue
		}
		for _, work := range []string{"cuMemcpyDtoHAsync=3ms", "cuMemcpyHtoDAsync=3ms"} {
			t.Run(p.name+" "+work[:12], func(t *testing.T) {
				t.Parallel()
				p.check(t, "rows", "GM_FAKE_WORK="+work)
			})
		}
	}
}

// TestStays keeps on the device what cannot go to the host.
func TestStays(t *testing.T) {
	const stays = "gmswap: tensors stay on the device: "
	for name, c := range map[string]struct {
		env  string
		says []string
	}{
		"full":   {"GMSWAP_HOST=400000", []string{stays + "host memory is full: 65536 bytes asked"}},
		"copy":   {"GM_FAKE_FAIL=cuMemcpyDtoHAsync:50=999", []string{stays + "copy "}},
		"pinned": {"GM_FAKE_FAIL=cuMemHostRegister:1=1", []string{"gm: device 0: swap: 0 bytes of host memory are pinned", stays + "host memory is full: 65536 bytes asked, 0 of 0"}},
	} {
		for _, how := range []string{"remake", "rows"} {
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				s := newSession(t)
				_, said := s.same("plain", how, c.env)
				slices.Sort(said) // libgm.so's log is written by another thread
				s.says(said, c.says)
			})
		}
	}
}

// TestFaults has calls of the driver fail: a program goes on as if nothing had happened, or ends, and does nothing wrong before.
func TestFaults(t *testing.T) {
	for _, call := range []string{"cuStreamWaitEvent", "cuEventRecord", "cuMemcpyDtoHAsync", "cuMemcpyHtoDAsync"} {
		for _, nth := range []string{"20", "57", "111", "333+"} {
			t.Run(call+" "+nth, func(t *testing.T) {
				t.Parallel()
				s := newSession(t)
				r := s.hooked("plain", "rows", "GM_FAKE_FAIL="+call+":"+nth+"=1")
				want := s.want("plain")
				if r.code == 0 && r.stdout == want {
					return
				}
				if r.code != 1 || !strings.HasPrefix(want, r.stdout) || !strings.Contains(r.stderr, call) {
					t.Errorf("%+v", r)
				}
			})
		}
	}
}

// TestLost ends a program that cannot have back what it saved, or that was given something else.
func TestLost(t *testing.T) {
	for name, c := range map[string]struct{ program, env, says string }{
		"copy":   {"plain", "GM_FAKE_FAIL=cuMemcpyHtoDAsync:40+=1", "gmswap_hook.library.Failure: copy 65536 bytes in: cuMemcpyHtoDAsync: CUDA_ERROR_INVALID_VALUE"},
		"bias":   {"late_bias", "", "gmswap_hook.entry.Changed: one of the variables needed for gradient computation has been modified"},
		"branch": {"branch", "", "gmswap_hook.samples.Wrong: step 7 does not do what the recorded step did"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSession(t)
			if r := s.hooked(c.program, "remake", c.env); r.code != 1 || !strings.Contains(r.stderr, c.says) {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestMade follows schedules that libgm.so makes.
func TestMade(t *testing.T) {
	for _, policy := range []string{"auto", "memo", "belady"} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			s := newSession(t)
			stats := filepath.Join(s.dir, "stats-%p")
			f, said := s.same("plain", "auto", "GMSWAP_DEVICE=1200000", "GMSWAP_POLICY="+policy, "GMSWAP_STATS="+stats)
			if s.says(said, nil); f.Out == 0 || f.Declined || f.Followed == 0 {
				t.Errorf("the hook did %+v", f)
			}
			checkAccount(t, stats, f.Steps)
		})
	}
	t.Run("none", func(t *testing.T) {
		dry, _ := newSession(t).same("plain", "auto", "GMSWAP_DRY=1")
		if f, said := newSession(t).same("plain", "auto"); f.Out != dry.Out || f.Steps != 12 || len(said) != 0 || !dry.Declined {
			t.Errorf("the hook did %+v, and said %q; dry %+v", f, said, dry)
		}
	})
	t.Run("unknown", func(t *testing.T) {
		s := newSession(t)
		_, said := s.same("plain", "auto", "GMSWAP_POLICY=no")
		s.says(said, []string{"gmswap: no schedule: "})
	})
}

// checkAccount reads the file that GMSWAP_STATS names.
func checkAccount(t *testing.T, pattern string, steps int) {
	t.Helper()
	files, err := filepath.Glob(strings.Replace(pattern, "%p", "*", 1))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	var account struct {
		Steps    [][2]any
		Ways     map[string]int
		Lanes    map[string]int64
		Schedule map[string]any
	}
	data, err := os.ReadFile(files[0])
	if err == nil {
		err = json.Unmarshal(data, &account)
	}
	ended := 0
	for _, n := range account.Ways {
		ended += n
	}
	if err != nil || len(account.Steps) != steps-1 || ended != steps || account.Ways["planned"] == 0 || account.Lanes["bytes_out"] == 0 ||
		account.Schedule["policy"] == "" {
		t.Errorf("%v: %s", err, data)
	}
}

// TestUnserved leaves programs alone that it cannot serve.
func TestUnserved(t *testing.T) {
	for name, c := range map[string]struct{ program, env, says string }{
		"compiled":  {"whole", "", "gmswap: nothing that is saved is moved: torch.compile made the model as a whole"},
		"old":       {"plain", "STUB_TORCH_WITHOUT=torch._C._current_graph_task_id", "gmswap: nothing is moved: PyTorch 2.11.0+stub is too old, 2.0 is needed"},
		"addresses": {"plain", "STUB_TORCH_ADDRESSES=3900", "gmswap: nothing is moved: a limit of addresses (ulimit -v) leaves less than 4096 MiB"},
		"no host":   {"plain", "GMSWAP_HOST=0", "gmswap: nothing is moved: Failure: open the swapper of device 0: host memory of no full page"},
		"no driver": {"plain", "GM_FAKE_FAIL=cuStreamCreate:1=2", "gmswap: nothing is moved: Failure: open the swapper of device 0: make a stream"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSession(t)
			f, said := s.same(c.program, "remake", c.env)
			if s.says(said, []string{c.says}); f.Out != 0 {
				t.Errorf("the hook did %+v", f)
			}
		})
	}
}

// TestOld serves PyTorch 2.0, which lacks some of what is used.
func TestOld(t *testing.T) {
	const without = "STUB_TORCH_WITHOUT=always_call,torch.compiler,torch._C._functorch.is_functorch_wrapped_tensor," +
		"torch._C._autograd._top_saved_tensors_default_hooks,torch._C._storage_Use_Count"
	for _, p := range programs {
		if p.name == "plain" || p.name == "raised" {
			t.Run(p.name, func(t *testing.T) {
				t.Parallel()
				p.check(t, "rows", without)
			})
		}
	}
}
