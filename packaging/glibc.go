package main

import (
	"debug/elf"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// glibc is a version of the GNU C library.
type glibc struct{ major, minor int }

func (g glibc) String() string { return fmt.Sprintf("%d.%d", g.major, g.minor) }

func (g glibc) newer(than glibc) bool {
	return g.major > than.major || g.major == than.major && g.minor > than.minor
}

// libraries are what an executable or a library may need: what every Linux system with glibc has (PEP 600).
var libraries = []string{"libc.so.6", "libdl.so.2", "libpthread.so.0", "libgcc_s.so.1"}

// oldestGlibc returns the oldest glibc that executables and libraries load on, by the versions of the functions that they name; 0.0 if all
// are linked statically.
func oldestGlibc(files []string) (oldest glibc, err error) {
	for _, name := range files {
		g, err := needs(name)
		if err != nil {
			return glibc{}, fmt.Errorf("%s: %w", name, err)
		}
		if g.newer(oldest) {
			oldest = g
		}
	}
	return oldest, nil
}

// needs returns the oldest glibc that a file loads on.
func needs(name string) (oldest glibc, err error) {
	file, err := elf.Open(name)
	if err != nil {
		return glibc{}, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if file.SectionByType(elf.SHT_DYNAMIC) == nil {
		return glibc{}, nil
	}
	linked, err := file.ImportedLibraries()
	if err != nil {
		return glibc{}, err
	}
	for _, library := range linked {
		if !slices.Contains(libraries, library) {
			return glibc{}, fmt.Errorf("it needs %s, which not every system has", library)
		}
	}
	versions, err := file.DynamicVersionNeeds()
	if err != nil {
		return glibc{}, err
	}
	for _, of := range versions {
		for _, version := range of.Needs {
			number, known := strings.CutPrefix(version.Dep, "GLIBC_")
			if !known {
				continue // of another library, such as GCC_3.0
			}
			var g glibc
			if _, err := fmt.Sscanf(number, "%d.%d", &g.major, &g.minor); err != nil {
				return glibc{}, fmt.Errorf("it needs version %s of %s", version.Dep, of.Name)
			}
			if g.newer(oldest) {
				oldest = g
			}
		}
	}
	return oldest, nil
}
