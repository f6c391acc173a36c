package main

// #include <stdlib.h>
// #include "libgm.h"
import "C"

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unsafe"

	"gm/internal/blocks"
	"gm/internal/cuda"
	"gm/internal/libgm/page"
	"gm/internal/libgm/planner/client"
)

// settings are those of the environment.
type settings struct {
	alloc   string
	log     string
	stats   string
	plan    string
	auto    bool
	planner client.Planner
	limit   int64 // bytes that may be taken from each device, 0 for all
	events  int   // requests that a trace holds
	dir     string
	server  string // socket of the memory server, "" for none
	name    string // of the job, for the memory server
	links   []int  // ordinals of GPUs whose links to the host sleep and wake use, too
	run     string // folder of a run of gmstitch, into which each process writes its account
}

const (
	defaultAlloc  = "stitch"
	defaultEvents = 4 << 20
)

func readSettings() settings {
	s := settings{
		alloc: env("GM_ALLOC"), log: env("GM_LOG"), stats: env("GM_STATS"), dir: env("GM_DIR"), run: env("GMSTITCH_DIR"), events: defaultEvents,
	}
	s.plan, s.auto = env("GM_PLAN"), env("GM_AUTO") == "1"
	s.server, s.name = env("GM_SERVER"), env("GM_NAME")
	s.links, _ = ordinals(env("GM_LINKS"))
	s.planner.Path = plannerPath()
	if n, err := strconv.ParseInt(env("GM_LIMIT"), 10, 64); err == nil && n > 0 {
		s.limit = n
	}
	if s.alloc == "" {
		s.alloc = defaultAlloc
	}
	if s.dir == "" {
		s.dir = page.Dir()
	}
	if n, err := strconv.Atoi(env("GM_EVENTS")); err == nil && n > 0 {
		s.events = n
	}
	return s
}

// ordinals reads numbers of GPUs with commas between them. It leaves out what is none, and returns the last of that, too.
func ordinals(text string) (all []int, wrong string) {
	for word := range strings.SplitSeq(text, ",") {
		word = strings.TrimSpace(word)
		n, err := strconv.Atoi(word)
		switch {
		case err == nil && n >= 0 && n < C.GM_DEVICES:
			all = append(all, n)
		case word != "":
			wrong = word
		}
	}
	return all, wrong
}

// plannerPath returns the path of the planner for this process: GM_PLANNER if set, or else gmstitch in the folder of libgm.so; "" without
// either.
func plannerPath() string {
	if path := env("GM_PLANNER"); path != "" {
		return path
	}
	library := C.GoString(C.gm_library())
	if library == "" {
		return ""
	}
	path := filepath.Join(filepath.Dir(library), "gmstitch")
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	return path
}

// env returns the present value of a variable. Go's own copy of the environment is from the start of the process.
func env(name string) string {
	c := C.CString(name)
	defer C.free(unsafe.Pointer(c))
	return C.GoString(C.getenv(c))
}

// traced reports whether requests are recorded.
func (s *settings) traced() bool { return strings.HasSuffix(s.stats, ".parquet") }

// newAllocator makes the allocator that the settings name. An unknown one, or one that cannot run in a process, is reported and replaced by
// the default.
func (s *settings) newAllocator(dev cuda.Device, ordinal int, log *logger) (blocks.Allocator, error) {
	spec, err := blocks.ParseSpec(s.alloc)
	if err == nil && !spec.InProcess {
		err = fmt.Errorf("programs do not run on %s, only on %s", spec.Name, strings.Join(inProcess(), ", "))
	}
	if err != nil {
		log.printf("GM_ALLOC=%s: %v; stitch is used", s.alloc, err)
	}
	if err != nil || spec.Text == defaultAlloc {
		return s.newStitch(dev, ordinal, log)
	}
	if s.plan != "" || s.auto {
		log.printf("GM_ALLOC=%s: only %s without settings follows a plan; none is followed", s.alloc, defaultAlloc)
	}
	return spec.New(dev, blocks.Job{})
}

// inProcess returns the names of the allocators that can run in a process.
func inProcess() []string {
	var names []string
	for _, e := range blocks.Registry() {
		if e.InProcess {
			names = append(names, e.Name)
		}
	}
	return names
}
