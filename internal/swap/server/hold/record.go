// Package hold keeps the memory that a server shares by keys beyond the server's end, for the next server of the same socket. Under systemd
// that is done by systemd's store of file descriptors, else by the holder, a small process which a server starts and leaves behind. Neither
// uses CUDA: they have descriptors, and records of what these are.
package hold

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// Record says what the memory of a descriptor is.
type Record struct {
	Memory [16]byte // a random number, which no other memory has; not 0
	Bus    [16]byte // the PCI address of its card
	Bytes  int64
	UID    uint32 // its user
	Maker  int32  // the process that made it
	Key    string // at most 255 bytes, none of them 0
}

// Held is memory that is held, and its descriptor.
type Held struct {
	Record
	FD int
}

// kind says what a frame is.
type kind uint16

const (
	_ kind = iota

	// To the holder.
	toPut    // with a descriptor: hold it
	toRemove // hold the memory of this number no longer
	toClear  // hold nothing any longer
	toTake   // say what is held

	// From the holder.
	isHeld // with a descriptor, for each memory; also the record that systemd has
	isAll  // after these

	kinds
)

const (
	magic = 0x4c484d47 // "GMHL"
	// version is that of frames. It is apart from that of the server's messages, as a holder lives on when the server is replaced.
	version = 1
)

// frame is a record as bytes, and all that a server and a holder say.
type frame struct {
	Magic   uint32
	Version uint16
	Kind    kind
	Memory  [16]byte
	Bus     [16]byte
	Bytes   int64
	UID     uint32
	Maker   int32
	Key     [256]byte
}

var frameSize = binary.Size(frame{})

var errFrame = errors.New("this is no record of shared memory")

func encode(k kind, r *Record) []byte {
	f := frame{Magic: magic, Version: version, Kind: k, Memory: r.Memory, Bus: r.Bus, Bytes: r.Bytes, UID: r.UID, Maker: r.Maker}
	copy(f.Key[:len(f.Key)-1], r.Key)
	b := make([]byte, frameSize)
	if _, err := binary.Encode(b, binary.LittleEndian, &f); err != nil {
		panic("BUG: " + err.Error())
	}
	return b
}

// decode reads a frame. What it accepts is within its bounds.
func decode(b []byte) (k kind, r Record, err error) {
	var f frame
	if len(b) != frameSize {
		return 0, r, errFrame
	}
	if _, err := binary.Decode(b, binary.LittleEndian, &f); err != nil {
		return 0, r, fmt.Errorf("%w: %w", errFrame, err)
	}
	key, _, ended := bytes.Cut(f.Key[:], []byte{0})
	if f.Magic != magic || f.Kind == 0 || f.Kind >= kinds || !ended {
		return 0, r, errFrame
	}
	if f.Version != version {
		return 0, r, fmt.Errorf("a record of shared memory has version %d, this program knows version %d", f.Version, version)
	}
	const most = 1 << 50
	if (f.Kind == toPut || f.Kind == isHeld) && (f.Memory == [16]byte{} || f.Bytes <= 0 || f.Bytes > most || len(key) == 0) {
		return 0, r, errFrame
	}
	return f.Kind, Record{Memory: f.Memory, Bus: f.Bus, Bytes: f.Bytes, UID: f.UID, Maker: f.Maker, Key: string(key)}, nil
}
