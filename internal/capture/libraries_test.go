package capture

import "testing"

// TestLibraries finds the library of an address. One that is added takes the place of those that it overlaps, and an empty one is none.
func TestLibraries(t *testing.T) {
	var l libraries
	for _, lib := range []library{
		{from: 30, to: 40, path: "c"}, {from: 10, to: 20, path: "a"}, {from: 20, to: 30, path: "b"}, {from: 50, to: 50, path: "empty"}, {from: 60, to: 70, path: "d"},
		{from: 35, to: 61, path: "e"}, {from: 15, to: 15, path: "empty"}, {from: 80, to: 90, path: "g"}, {from: 70, to: 80, path: "f"},
	} {
		l.add(lib)
	}
	for address, want := range map[uint64]string{9: "", 10: "a", 19: "a", 20: "b", 29: "b", 30: "", 34: "", 35: "e", 50: "e", 60: "e", 61: "", 69: "", 70: "f", 79: "f", 80: "g", 89: "g", 90: ""} {
		for range 2 { // the second time by the library found last
			got := ""
			if lib := l.find(address); lib != nil {
				got = lib.path
			}
			if got != want {
				t.Errorf("address %d: %q, want %q", address, got, want)
			}
		}
	}
}

// TestMostLibraries adds as many libraries as there may be, and no more.
func TestMostLibraries(t *testing.T) {
	var l libraries
	for i := range uint64(maxLibraries + 2) {
		l.add(library{from: i, to: i + 1})
	}
	if len(l.list) != maxLibraries {
		t.Errorf("%d libraries, at most %d are kept", len(l.list), maxLibraries)
	}
}
