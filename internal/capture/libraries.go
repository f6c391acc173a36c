package capture

import (
	"cmp"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// library is an address range of a process's code and the file mapped there.
type library struct {
	from, to uint64
	offset   uint64 // of from in the file
	path     string // empty for code without a file
	owner    string // see the function owner
}

// libraries are those libraries of a process that requested memory.
type libraries struct {
	list []library // by from
	last int       // index of the library found last
	adds int
}

// maxLibraries bounds the libraries of a process, including those that were unloaded. The preload library reports at most a quarter as
// many.
const maxLibraries = 4096

// add adds a library and removes those that overlap it: they were unloaded, or they grew, as code generated at run time does.
func (l *libraries) add(lib library) {
	if l.adds++; l.adds > maxLibraries || lib.from >= lib.to {
		return
	}
	lib.owner = owner(lib.path)
	l.list = slices.DeleteFunc(l.list, func(old library) bool { return old.from < lib.to && lib.from < old.to })
	i, _ := slices.BinarySearchFunc(l.list, lib.from, func(a library, from uint64) int { return cmp.Compare(a.from, from) })
	l.list = slices.Insert(l.list, i, lib)
}

// find returns the library that holds an address; nil when none is known.
func (l *libraries) find(address uint64) *library {
	if l.last < len(l.list) && address >= l.list[l.last].from && address < l.list[l.last].to {
		return &l.list[l.last]
	}
	i, found := slices.BinarySearchFunc(l.list, address, func(a library, at uint64) int { return cmp.Compare(a.from, at) })
	if !found {
		i--
	}
	if i < 0 || address >= l.list[i].to {
		return nil
	}
	l.last = i
	return &l.list[i]
}

// has reports whether one of the libraries belongs to an owner.
func (l *libraries) has(name string) bool {
	return slices.ContainsFunc(l.list, func(lib library) bool { return lib.owner == name })
}

// owners maps paths of libraries to names of owners. The first match applies.
var owners = []struct {
	path *regexp.Regexp
	name string
}{
	{regexp.MustCompile(`/lib(c10|torch)[^/]*\.so|/torch/_C[^/]*\.so`), "pytorch"},
	{regexp.MustCompile(`/libnccl[^/]*\.so`), "nccl"},
	{regexp.MustCompile(`/libnvshmem[^/]*\.so`), "nvshmem"},
	{regexp.MustCompile(`/libcublas[^/]*\.so`), "cublas"},
	{regexp.MustCompile(`/libcudnn[^/]*\.so`), "cudnn"},
	{regexp.MustCompile(`/cupy(_backends|x)?/`), "cupy"},
	{regexp.MustCompile(`/jaxlib/|/jax_plugins/|/libxla[^/]*\.so|/xla_cuda`), "jax"},
	{regexp.MustCompile(`/tensorflow/`), "tensorflow"},
	{regexp.MustCompile(`/triton/`), "triton"},
	{regexp.MustCompile(`/libffi|/_ctypes\.`), "ctypes"},
}

var suffix = regexp.MustCompile(`(\.cpython-[^/]*)?(-[0-9a-f]{8})?\.so[.0-9]*$`)

// owner returns the name by which memory requested from a file is tagged: that of a known library, or else of the file.
func owner(path string) string {
	if path == "" {
		return ""
	}
	for _, o := range owners {
		if o.path.MatchString(path) {
			return o.name
		}
	}
	base := filepath.Base(path)
	if name := suffix.ReplaceAllString(base, ""); name != base {
		return strings.TrimPrefix(name, "lib")
	}
	return base
}
