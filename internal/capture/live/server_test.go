package live

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// serve starts a server, and answers in a goroutine until the test ends or stop is called.
func serve(t *testing.T, folder string, look func() *View) (stop func()) {
	t.Helper()
	s, err := Serve(folder)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var polling sync.WaitGroup
	polling.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
				s.Answer(look)
			}
		}
	})
	var once sync.Once
	stop = func() {
		once.Do(func() {
			close(done)
			polling.Wait()
			s.Close()
			s.Close() // does nothing
		})
	}
	t.Cleanup(stop)
	return stop
}

func TestServe(t *testing.T) {
	folder := filepath.Join(t.TempDir(), strings.Repeat("long/", 30), "gmtrace-1")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	steps := int64(0)
	stop := serve(t, folder, func() *View {
		steps++
		return &View{PID: 7, Command: []string{"a b"}, Processes: []Process{{PID: 8, Steps: steps, Devices: []Device{}}}}
	})
	if diff := cmp.Diff([]string{folder}, Folders(filepath.Dir(folder))); diff != "" {
		t.Error(diff)
	}
	var clients sync.WaitGroup
	for range 20 {
		clients.Go(func() {
			if v, err := Ask(folder); err != nil || v.PID != 7 || v.Processes[0].Steps == 0 {
				t.Errorf("%+v, %v", v, err)
			}
		})
	}
	clients.Wait()
	watched := filepath.Join(folder, watchedName)
	if _, err := os.Stat(watched); err != nil {
		t.Error(err)
	}
	time.Sleep(watchedFor + 500*time.Millisecond)
	if _, err := os.Stat(watched); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("somebody watches after %v: %v", watchedFor, err)
	}
	stop()
	if _, err := Ask(folder); err != ErrEnded {
		t.Errorf("after the end: %v", err)
	}
	if got := Folders(filepath.Dir(folder)); len(got) > 0 {
		t.Errorf("after the end: %q", got)
	}
}

// TestEnds: who waits when a capture ends is told so.
func TestEnds(t *testing.T) {
	folder := t.TempDir()
	s, err := Serve(folder)
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan error)
	go func() {
		_, err := Ask(folder)
		asked <- err
	}()
	for {
		if _, err := os.Stat(filepath.Join(folder, watchedName)); err == nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	s.Close()
	if err := <-asked; err != ErrEnded {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(folder, watchedName)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("somebody watches after the end: %v", err)
	}
}

// TestForeign: a folder that others can put something into, or a link to one, is neither served from nor asked.
func TestForeign(t *testing.T) {
	base := t.TempDir()
	own := filepath.Join(base, "gmtrace-own")
	if err := os.Mkdir(own, 0o700); err != nil {
		t.Fatal(err)
	}
	serve(t, own, func() *View { return &View{PID: 7} })
	link := filepath.Join(base, "gmtrace-link")
	if err := os.Symlink(own, link); err != nil {
		t.Fatal(err)
	}
	if _, err := Ask(link); err == nil {
		t.Error("a link is followed")
	}
	if got := Folders(base); len(got) != 1 || got[0] != own {
		t.Errorf("there are %q", got)
	}
	refused := func(what string) {
		t.Helper()
		if _, err := Ask(own); !errors.Is(err, errForeign) {
			t.Errorf("%s is asked: %v", what, err)
		}
		if _, err := Serve(own); !errors.Is(err, errForeign) {
			t.Errorf("%s is served from: %v", what, err)
		}
		if got := Folders(base); len(got) != 0 {
			t.Errorf("there are %q", got)
		}
	}
	if err := os.Chmod(own, 0o777); err != nil {
		t.Fatal(err)
	}
	refused("a folder that all may write to")
	if os.Geteuid() != 0 {
		return
	}
	if err := errors.Join(os.Chmod(own, 0o700), os.Chown(own, 12, 34)); err != nil {
		t.Fatal(err)
	}
	refused("the folder of another user")
}

func TestNoServer(t *testing.T) {
	var s *Server
	s.Answer(func() *View { t.Error("nobody asked"); return nil })
	s.Close()
	if _, err := Serve(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("serves in a folder that is not there")
	}
	if _, err := Ask(t.TempDir()); err != ErrEnded {
		t.Error(err)
	}
}
