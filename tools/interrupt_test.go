package tools

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestInterrupt interrupts each command that may work for long, on an input that keeps it busy for seconds. It has to end within 0.2 s, with
// status 130, and to leave no file; a search for a layout ends with the best one that it has, whole.
func TestInterrupt(t *testing.T) {
	dependOnSources(t)
	dir := t.TempDir()
	prepare := exec.Command("sh", "-ec", `gmtrace synth gpt2-medium,batch=8,seq=1024 --steps 1000 -o big.parquet
gmtrace synth gpt2-medium,batch=8,seq=1024 --steps 20 -o steps.parquet
gmtrace export --format csv -o big.csv big.parquet
gmswap net gpt-7b,seq=4Ki,layers=1000 -o net.parquet
awk 'BEGIN { srand(1); print "id,lower,upper,size"
	for (i = 0; i < 2000; i++) { from = int(rand() * 900); print i "," from "," from + 1 + int(rand() * 300) "," 1 + int(rand() * 1000) } }' >instance.csv`)
	prepare.Dir = dir
	if out, err := prepare.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, test := range map[string]struct {
		command string
		kept    bool // the best so far is written, with status 0
	}{
		"gmtrace show":       {command: "gmtrace show ../big.parquet"},
		"gmtrace show --top": {command: "gmtrace show --top 20 ../big.parquet"},
		"gmtrace show --png": {command: "gmtrace show --png x.png ../big.parquet"},
		"gmtrace diff":       {command: "gmtrace diff ../big.parquet ../big.parquet"},
		"gmtrace import":     {command: "gmtrace import ../big.csv -o x.parquet"},
		"gmtrace export":     {command: "gmtrace export ../big.parquet -o x.pickle"},
		"gmtrace synth":      {command: "gmtrace synth gpt2-medium,batch=8,seq=1024 --steps 4000 -o x.parquet"},
		"gmplan layout":      {command: "gmplan -o x.plan"}, // waits for its input
		"gmplan solve":       {command: "gmplan solve ../instance.csv --time 60s -o x.csv", kept: true},
		"gmbench":            {command: "gmbench --alloc torch,expandable,stitch --png x.png ../big.parquet"},
		"gmbench --why":      {command: "gmbench --why ../big.parquet"},
		"gmbench --fit":      {command: "gmbench --fit ../steps.parquet"},
		"gmbench tune":       {command: "gmbench tune ../steps.parquet ../steps.parquet"},
		"gmbench report":     {command: "gmbench report ../big.parquet -o x.html"},
		"gmstitch replay":    {command: "gmstitch replay --device sim ../big.parquet"},
		"gmswap compare":     {command: "gmswap compare ../net.parquet --png x.png"},
		"gmswap plan":        {command: "gmswap plan ../net.parquet -m 460GiB -o x.schedule"},
	} {
		t.Run(name, func(t *testing.T) {
			took := time.Hour
			for range 5 { // the machine may be busy
				took = min(took, interrupt(t, dir, strings.Fields(test.command), test.kept))
				if took < 200*time.Millisecond {
					break
				}
			}
			t.Logf("%s after the signal", took.Round(time.Millisecond))
			if took > 200*time.Millisecond {
				t.Errorf("it ended %s after the signal", took)
			}
		})
	}
}

// interrupt runs a command in an empty folder of dir, interrupts it and returns how long it takes to end then.
func interrupt(t *testing.T, dir string, words []string, kept bool) time.Duration {
	t.Helper()
	work, err := os.MkdirTemp(dir, "work-*")
	if err != nil {
		t.Fatal(err)
	}
	var output strings.Builder
	c := exec.Command(words[0], words[1:]...)
	c.Dir, c.Stderr = work, &output
	silence, err := c.StdinPipe() // nothing comes, nor an end
	if err != nil {
		t.Fatal(err)
	}
	defer silence.Close()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	select {
	case err := <-ended:
		t.Fatalf("%s ended by itself: %v\n%s", words, err, &output)
	case <-time.After(400 * time.Millisecond):
	}
	start := time.Now()
	if err := c.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	err = <-ended
	took := time.Since(start)
	want, files := 130, 0
	if kept {
		want, files = 0, 1
	}
	if failed := (*exec.ExitError)(nil); c.ProcessState.ExitCode() != want || err != nil && !errors.As(err, &failed) {
		t.Errorf("%s: %v, want status %d\n%s", words, err, want, &output)
	}
	left, err := filepath.Glob(filepath.Join(work, "*"))
	if err != nil || len(left) != files {
		t.Errorf("%s leaves %q, %v", words, left, err)
	}
	return took
}
