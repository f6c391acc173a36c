// Package fake is a CUDA driver, a CUDA runtime and an NVML in C that need no GPU: device memory is host memory, physical
// memory a memfd, a stream a thread. They are for tests of code between a program and the driver. Contents are real, so that
// two mappings of one handle are the same memory; times are not.
//
// The environment of a program that uses them:
//
//	GM_FAKE_DEVICES   number of devices, 1 if unset, at most 8
//	GM_FAKE_CAPACITY  bytes of each device, 141 GiB if unset; none of them are committed
//	GM_FAKE_LIMIT     bytes of each device that may be in use; more is CUDA_ERROR_OUT_OF_MEMORY
//	GM_FAKE_COUNTS    file of the fakes' counts; %p stands for the process id
//	GM_FAKE_FAIL      calls that fail: "cuMemCreate:3=2" the third with error 2, "cuMemMap:1+=1" all with error 1
//	GM_FAKE_DELAY     calls that take longer: "cuMemMap=20us,cuMemAlloc=1ms"
//	GM_FAKE_WORK      copies and fills that take longer in their streams, by the call: "cuMemcpyDtoHAsync=2ms"
//	GM_FAKE_RACES     file that gets a line for each two uses of memory of which one writes and neither waits for the other
//	GM_FAKE_RACES_SEED  draws how much later a program is told that an event has passed, where races are looked for
//
// Races are looked for by what waits for what, not by what happens: copies, fills, and what the program says that its kernels do
// (fake_races.h). Memory that is mapped is known by where it is, whatever its address.
//
// Results were compared with those of an H200 (driver 580, CUDA 13.0), on which most programs in testdata pass, too. Known
// differences: what a stream captures is dropped and gives no graph, and waiting for an event captures no other stream; there
// is no form of a function older than CUDA 3.2; an IPC handle can be opened several times, and the memory stays as long as it is
// open anywhere; pools and small allocations never fragment; a
// kernel runs nothing; memory that can be exported keeps a file open; cuMemMap refuses what the real driver lets pass, a
// range that begins in a reservation and ends behind it, and a handle that was released but is still mapped somewhere; and a copy
// of memory of the host that was registered in two pieces is refused, where the real driver may or may not.
//
// A name in GM_FAKE_FAIL, GM_FAKE_DELAY and GM_FAKE_WORK stands for all versions of the function (cuMemAlloc for cuMemAlloc_v2).
package fake

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

//go:embed driver
var sources embed.FS

// Libraries holds the paths of what Build made.
type Libraries struct {
	Dir           string // holds all of them, and libcuda.so, libcudart.so and libnvidia-ml.so for the linker
	Include       string // headers for programs: cuda_api.h, cudart.h, nvml.h
	Driver        string // libcuda.so.1
	Runtime       string // libcudart.so.13
	RuntimeStatic string // libcudart_static.a
	NVML          string // libnvidia-ml.so.1
}

// Env returns variables to append to os.Environ, with which a program finds the libraries. Counts go to the file counts, unless it is "".
func (l Libraries) Env(counts string) []string {
	path := l.Dir
	if before := os.Getenv("LD_LIBRARY_PATH"); before != "" {
		path += ":" + before
	}
	env := []string{"LD_LIBRARY_PATH=" + path}
	if counts != "" {
		env = append(env, "GM_FAKE_COUNTS="+counts)
	}
	return env
}

// ErrNoCompiler means that neither $CC nor gcc can be executed.
var ErrNoCompiler = errors.New("no C compiler")

// compiler returns the C compiler.
func compiler() (string, error) {
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "gcc"
	}
	path, err := exec.LookPath(cc)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrNoCompiler, err)
	}
	return path, nil
}

// Build compiles the libraries into dir, which must exist. The sources stay in dir/src for sanitizers and debuggers. Flags are passed to
// the compiler and to the linker.
func Build(dir string, flags ...string) (Libraries, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Libraries{}, fmt.Errorf("building the fake CUDA libraries: %w", err)
	}
	b := build{dir: dir, src: filepath.Join(dir, "src"), flags: flags}
	if b.cc, err = compiler(); err != nil {
		return Libraries{}, fmt.Errorf("building the fake CUDA libraries: %w", err)
	}
	if err := b.all(); err != nil {
		return Libraries{}, fmt.Errorf("building the fake CUDA libraries: %w", err)
	}
	return Libraries{
		Dir:           dir,
		Include:       b.src,
		Driver:        filepath.Join(dir, "libcuda.so.1"),
		Runtime:       filepath.Join(dir, "libcudart.so.13"),
		RuntimeStatic: filepath.Join(dir, "libcudart_static.a"),
		NVML:          filepath.Join(dir, "libnvidia-ml.so.1"),
	}, nil
}

// build is one run of Build.
type build struct {
	cc, dir, src string
	flags        []string
}

// A library is linked from the objects of its sources. With Bsymbolic, as in the real driver, its tables hold its own functions, even if a
// preloaded object has functions of the same names.
type library struct {
	name, link string // link is the name that -l finds
	sources    []string
	flags      []string
}

// The driver consists of the sources that no other library names.
var libraries = []library{
	{name: "libcuda.so.1", link: "libcuda.so"},
	{name: "libcudart.so.13", link: "libcudart.so", sources: []string{"cudart.c"}, flags: []string{"-Wl,--version-script=cudart.map"}},
	{name: "libnvidia-ml.so.1", link: "libnvidia-ml.so", sources: []string{"nvml.c", "machine.c", "counts_file.c"}},
}

func (b build) all() error {
	files, err := b.unpack()
	if err != nil {
		return err
	}
	if err := b.compile(files); err != nil {
		return err
	}
	for _, l := range libraries {
		if l.sources == nil {
			l.sources = driverSources(files)
		}
		if err := b.link(l); err != nil {
			return err
		}
	}
	return b.archive()
}

// unpack writes the sources into b.src and returns the names of the C files.
func (b build) unpack() ([]string, error) {
	if err := os.MkdirAll(b.src, 0o777); err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(sources, "driver")
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		text, err := fs.ReadFile(sources, "driver/"+e.Name())
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(b.src, e.Name()), text, 0o666); err != nil {
			return nil, err
		}
		if strings.HasSuffix(e.Name(), ".c") {
			files = append(files, e.Name())
		}
	}
	return files, nil
}

func driverSources(files []string) []string {
	var out []string
	for _, f := range files {
		if f != "cudart.c" && f != "nvml.c" {
			out = append(out, f)
		}
	}
	return out
}

// compile makes an object of every file, in two halves at once.
func (b build) compile(files []string) error {
	var group sync.WaitGroup
	errs := make([]error, 2)
	for half := range errs {
		group.Go(func() {
			args := []string{"-c", "-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-fPIC", "-fvisibility=hidden", "-pthread", "-Wall", "-Wextra"}
			args = append(args, b.flags...)
			for i := half; i < len(files); i += len(errs) {
				args = append(args, files[i])
			}
			errs[half] = b.run(b.cc, args...)
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

func object(source string) string { return strings.TrimSuffix(source, ".c") + ".o" }

func (b build) link(l library) error {
	args := []string{"-shared", "-o", filepath.Join(b.dir, l.name), "-Wl,-soname," + l.name, "-Wl,-Bsymbolic", "-Wl,-z,nodelete"}
	args = append(args, l.flags...)
	for _, s := range l.sources {
		args = append(args, object(s))
	}
	args = append(args, b.flags...)
	args = append(args, "-pthread", "-ldl")
	if err := b.run(b.cc, args...); err != nil {
		return err
	}
	link := filepath.Join(b.dir, l.link)
	if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Symlink(l.name, link)
}

func (b build) archive() error {
	return b.run("ar", "rcs", filepath.Join(b.dir, "libcudart_static.a"), object("cudart.c"))
}

func (b build) run(name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Dir = b.src
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(append([]string{name}, args...), " "), err, out)
	}
	return nil
}
