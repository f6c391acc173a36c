package main

// #include <stdlib.h>
// #include "libgm.h"
import "C"

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unsafe"

	"gm/internal/blocks"
	"gm/internal/cuda"
	"gm/internal/libgm/page"
	"gm/internal/libgm/planner/client"
	"gm/internal/torch/allocconf"
)

// settings are the environment's.
type settings struct {
	alloc   string
	log     string
	stats   string
	plan    string
	auto    bool
	planner client.Planner
	limit   int64 // bytes that may be taken from a device, 0 for all
	events  int   // that a trace holds
	dir     string
	run     string // gmstitch's folder, where a process leaves its account
}

const defaultEvents = 4 << 20

func readSettings() settings {
	s := settings{
		alloc: env("GM_ALLOC"), log: env("GM_LOG"), stats: env("GM_STATS"), dir: env("GM_DIR"), run: env("GMSTITCH_DIR"), events: defaultEvents,
	}
	s.plan, s.auto = env("GM_PLAN"), env("GM_AUTO") == "1"
	s.planner.Path = plannerPath()
	if n, err := strconv.ParseInt(env("GM_LIMIT"), 10, 64); err == nil && n > 0 {
		s.limit = n
	}
	if s.alloc == "" {
		s.alloc = "stitch"
	}
	if s.dir == "" {
		s.dir = page.Dir()
	}
	if n, err := strconv.Atoi(env("GM_EVENTS")); err == nil && n > 0 {
		s.events = n
	}
	return s
}

// plannerPath returns what plans for this process: what GM_PLANNER names, or else gmstitch in the folder of libgm.so, "" without that.
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

// env reads a variable as the program has it now: Go's own environment is that of the start of the process.
func env(name string) string {
	c := C.CString(name)
	defer C.free(unsafe.Pointer(c))
	return C.GoString(C.getenv(c))
}

// traced says whether requests are recorded.
func (s *settings) traced() bool { return strings.HasSuffix(s.stats, ".parquet") }

// newAllocator makes the allocator that the settings name. One that cannot be made is told of and replaced by the default.
func (s *settings) newAllocator(dev cuda.Device, ordinal int, log *logger) (blocks.Allocator, error) {
	name, opts, _ := strings.Cut(s.alloc, ":")
	switch name {
	case "torch", "expandable":
		conf, err := allocconf.Parse(opts)
		if err == nil {
			conf.Expandable = conf.Expandable || name == "expandable"
			return blocks.NewTorch(dev, conf)
		}
		log.printf("GM_ALLOC=%s: %v; stitch is used", s.alloc, err)
	case "gmlake":
		return blocks.NewGMLake(dev, blocks.DefaultGMLakeConf())
	case "stitch":
	default:
		log.printf("GM_ALLOC=%s: no such allocator; stitch is used", s.alloc)
	}
	return s.newStitch(dev, ordinal, log)
}
