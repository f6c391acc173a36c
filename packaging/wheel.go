package main

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"gm/internal/version"
)

//go:embed python/gm/*.py
var python embed.FS

// wheel is a package for pip under construction: a zip with a list of what is in it (PEP 427).
type wheel struct {
	zip     *zip.Writer
	records bytes.Buffer
	time    time.Time
}

// tags are the systems that a wheel is for: a Linux with that glibc (PEP 600), under its older name as well where it has one (PEP 599).
func tags(needed glibc) ([]string, error) {
	if runtime.GOARCH != "amd64" {
		return nil, fmt.Errorf("no wheels are made on %s", runtime.GOARCH)
	}
	if needed == (glibc{2, 17}) {
		return []string{"manylinux_2_17_x86_64", "manylinux2014_x86_64"}, nil
	}
	return []string{fmt.Sprintf("manylinux_%d_%d_x86_64", needed.major, needed.minor)}, nil
}

// makeWheel makes a wheel in a folder from what make install installed in another, for the glibc that this and more files need. It returns
// its name.
func makeWheel(folder, installed string, more []string) (name string, err error) {
	programs, err := filepath.Glob(filepath.Join(installed, "bin", "*"))
	if err != nil || len(programs) == 0 {
		return "", fmt.Errorf("no programs in %s", installed)
	}
	library := filepath.Join(installed, "lib", "libgm.so")
	needed, err := oldestGlibc(slices.Concat(programs, []string{library}, more))
	if err != nil {
		return "", err
	}
	platforms, err := tags(needed)
	if err != nil {
		return "", err
	}
	all := platforms[0]
	for _, p := range platforms[1:] {
		all += "." + p
	}
	name = filepath.Join(folder, "gm-"+version.Number+"-py3-none-"+all+".whl")
	var text bytes.Buffer
	w := &wheel{zip: zip.NewWriter(&text), time: commitTime()}
	// Half of a wheel is the three libraries that are in several tools; the best compression takes long and finds little more.
	w.zip.RegisterCompressor(zip.Deflate, func(out io.Writer) (io.WriteCloser, error) { return flate.NewWriter(out, flate.DefaultCompression) })
	if err := w.fill(installed, programs, platforms); err != nil {
		return "", err
	}
	return name, os.WriteFile(name, text.Bytes(), 0o644)
}

// commitTime is SOURCE_DATE_EPOCH, so that the same commit makes the same wheel.
func commitTime() time.Time {
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		seconds = time.Now().Unix()
	}
	return time.Unix(seconds, 0).UTC()
}

// fill adds all files, the list of them last.
func (w *wheel) fill(installed string, programs, platforms []string) error {
	for _, program := range programs {
		if err := w.copy("gm-"+version.Number+".data/scripts/"+filepath.Base(program), program, 0o755); err != nil {
			return err
		}
	}
	err := fs.WalkDir(python, "python", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := python.ReadFile(name)
		if err != nil {
			return err
		}
		return w.add(name[len("python/"):], text, 0o644)
	})
	if err != nil {
		return err
	}
	for _, name := range []string{"lib/libgm.so", "include/gm.h"} {
		if err := w.copy("gm/"+path.Base(name), filepath.Join(installed, name), 0o644); err != nil {
			return err
		}
	}
	if err := w.documents(installed); err != nil {
		return err
	}
	return w.describe(installed, platforms)
}

// documents adds what pip installs in share/doc/gm of the environment. The licences are in the metadata.
func (w *wheel) documents(installed string) error {
	root := filepath.Join(installed, "share/doc/gm")
	return filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || entry.Name() == "third-party.txt" {
			return err
		}
		return w.copy("gm-"+version.Number+".data/data/share/doc/gm"+strings.TrimPrefix(name, root), name, 0o644)
	})
}

// describe adds the folder of metadata.
func (w *wheel) describe(installed string, platforms []string) error {
	info := "gm-" + version.Number + ".dist-info/"
	for _, name := range []string{"LICENSE", "third-party.txt"} {
		if err := w.copy(info+"licenses/"+name, filepath.Join(installed, "share/doc/gm", name), 0o644); err != nil {
			return err
		}
	}
	text := "Wheel-Version: 1.0\nGenerator: gm " + version.Number + "\nRoot-Is-Purelib: false\n"
	for _, platform := range platforms {
		text += "Tag: py3-none-" + platform + "\n"
	}
	if err := w.add(info+"WHEEL", []byte(text), 0o644); err != nil {
		return err
	}
	if err := w.add(info+"METADATA", []byte(fmt.Sprintf(metadata, version.Number)), 0o644); err != nil {
		return err
	}
	w.records.WriteString(info + "RECORD,,\n")
	if err := w.write(info+"RECORD", w.records.Bytes(), 0o644); err != nil {
		return err
	}
	return w.zip.Close()
}

const metadata = `Metadata-Version: 2.1
Name: gm
Version: %s
Summary: GPU memory of deep learning: where it goes, why it ran out, and how little is enough
License: Apache-2.0
Requires-Python: >=3.9
Classifier: Environment :: GPU :: NVIDIA CUDA
Classifier: License :: OSI Approved :: Apache Software License
Classifier: Operating System :: POSIX :: Linux
Description-Content-Type: text/markdown

The tools gmtrace, gmplan, gmbench, gmstitch and gmswap, and a module that records PyTorch programs and shows their traces:

    import gm
    with gm.trace("job.parquet"):
        train()
    print(gm.why_oom("job.parquet"))
`

func (w *wheel) copy(name, from string, mode fs.FileMode) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return w.add(name, data, mode)
}

// add adds a file and lists it.
func (w *wheel) add(name string, data []byte, mode fs.FileMode) error {
	sum := sha256.Sum256(data)
	fmt.Fprintf(&w.records, "%s,sha256=%s,%d\n", name, base64.RawURLEncoding.EncodeToString(sum[:]), len(data))
	return w.write(name, data, mode)
}

func (w *wheel) write(name string, data []byte, mode fs.FileMode) error {
	header := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: w.time}
	header.SetMode(mode)
	out, err := w.zip.CreateHeader(header)
	if err == nil {
		_, err = out.Write(data)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
