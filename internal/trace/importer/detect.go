package importer

import (
	"bytes"
	"slices"
	"strings"
)

// Format is the format of an input.
type Format int

// The formats. Parquet is detected so that the error can say that it needs no import.
const (
	Unknown Format = iota
	Snapshot
	RMM
	STAlloc
	MiniMalloc
	Plain
	Kineto
	Parquet
)

// String returns the format's name, as it appears in the source of a trace.
func (f Format) String() string {
	switch f {
	case Snapshot:
		return "pytorch snapshot"
	case RMM:
		return "rmm log"
	case STAlloc:
		return "stalloc trace"
	case MiniMalloc:
		return "minimalloc csv"
	case Plain:
		return "csv"
	case Kineto:
		return "pytorch profile"
	case Parquet:
		return "parquet file"
	}
	return "unknown format"
}

// detectBytes is how many bytes of an input Detect needs.
const detectBytes = 16 << 10

// Detect returns the format of an input, given its first bytes, decompressed.
func Detect(head []byte) Format {
	switch {
	case bytes.HasPrefix(head, []byte("PAR1")):
		return Parquet
	case isPickle(head):
		return Snapshot
	case isKineto(head):
		return Kineto
	}
	lines := strings.Split(string(bytes.TrimPrefix(head, utf8BOM)), "\n")
	for i, line := range lines {
		line = strings.TrimSuffix(line, "\r")
		switch {
		case line == "":
			continue
		case i == len(lines)-1 && len(head) == detectBytes:
			return Unknown // cut off
		case isSTAlloc(line):
			return STAlloc
		case isSTAllocMark(line):
			continue
		}
		return detectCSV(line)
	}
	return Unknown
}

var utf8BOM = []byte("\xef\xbb\xbf")

// isPickle recognizes pickles of a list or dict and, from protocol 2 on, of anything.
func isPickle(head []byte) bool {
	if len(head) < 2 {
		return false
	}
	switch head[0] {
	case 0x80:
		return true
	case '(':
		return head[1] == 'd' || head[1] == 'l'
	case '}', ']':
		return slices.Contains([]byte("qr(."), head[1])
	}
	return false
}

// detectCSV detects the format of a table from its first line.
func detectCSV(line string) Format {
	names, ok := splitCSV(nil, line)
	if !ok {
		return Unknown
	}
	for i := range names {
		names[i] = strings.ToLower(strings.TrimSpace(names[i]))
	}
	has := func(wanted ...string) bool {
		return slices.ContainsFunc(wanted, func(name string) bool { return slices.Contains(names, name) })
	}
	switch {
	case has("time_ns") && has("op"):
		return Plain
	case has("action") && has("pointer"):
		return RMM
	case has("lower", "begin", "start") && has("upper", "end") && has("size"):
		return MiniMalloc
	case len(names) == len(rmmColumns) && rmmActions[names[2]] != rmmUnknown:
		return RMM
	}
	return Unknown
}
