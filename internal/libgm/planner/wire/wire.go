// Package wire holds the messages between libgm.so, in a user's process, and the planner, in a process of its own.
//
// A message is a header of 16 bytes and a body. All numbers are little-endian:
//
//	bytes 0-3    "gmpl"
//	bytes 4-5    Version
//	bytes 6-7    Kind
//	bytes 8-15   length of the body in bytes, at most the bound of its kind
//
// One request is sent over a connection, and one answer comes back. Each side checks what it decodes: a body is exactly as long as its
// counts say, and counts and sizes have bounds.
package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Version is that of the messages. A reader refuses any other.
const Version = 2

// Kind says what a body holds.
type Kind uint16

// Requests and answers.
const (
	AskLayout    Kind = 1 + iota // the requests of an iteration, to be laid out: answered by Cycle
	AskFile                      // the name of a plan file and a device: answered by Cycle
	AskSchedule                  // a request for a swap schedule (package request), in JSON: answered by Schedule
	Cycle                        // a plan that blocks.Cyclic follows
	Schedule                     // a swap schedule (package request), in JSON
	Failure                      // why there is no answer, as text
	AskOrder                     // a request for an order of operators (package order/request), in JSON: answered by Order
	Order                        // an order of operators, likewise
	AskPartition                 // a request for what a compiled graph saves (package swap/partition), in JSON: answered by Partition
	Partition                    // what it saves, likewise
	AskSoon                      // as AskLayout, with the room that there is, for a plan that is wanted soon
)

const (
	headerSize = 16
	magic      = "gmpl"

	// MaxRequests is the most requests that an iteration sent for layout has.
	MaxRequests = 1 << 18
	// MaxSteps is the most steps of a plan.
	MaxSteps = 1 << 20
	// MaxArenas is the most arenas of a plan: each stream has one.
	MaxArenas = 1 << 12
	// MaxName is the most bytes of a file's name.
	MaxName = 4096
	// MaxText is the most bytes of a failure.
	MaxText = 4096
	// MaxJSON is the most bytes of a request for a swap schedule, an order or a partition, and of its answer.
	MaxJSON = 128 << 20
)

// bound returns the most bytes that the body of a kind has, -1 for a kind that there is not.
func bound(k Kind) int64 {
	switch k {
	case AskLayout:
		return 4 + MaxRequests*requestSize
	case AskSoon:
		return 8 + 4 + MaxRequests*requestSize
	case AskFile:
		return 4 + MaxName
	case AskSchedule, Schedule, AskOrder, Order, AskPartition, Partition:
		return MaxJSON
	case Cycle:
		return cycleHead + MaxArenas*8 + MaxSteps*stepSize
	case Failure:
		return MaxText
	}
	return -1
}

// Message is a request or an answer.
type Message struct {
	Kind Kind
	Body []byte
}

// Fail returns the answer to a request that failed.
func Fail(err error) Message {
	text := err.Error()
	return Message{Failure, []byte(text[:min(len(text), MaxText)])}
}

// Write writes a message. The error of a body above the bound of its kind is returned before anything is written.
func Write(w io.Writer, m Message) error {
	if most := bound(m.Kind); int64(len(m.Body)) > most {
		return fmt.Errorf("message of kind %d with %d bytes: at most %d are allowed", m.Kind, len(m.Body), most)
	}
	head := make([]byte, 0, headerSize)
	head = append(head, magic...)
	head = binary.LittleEndian.AppendUint16(head, Version)
	head = binary.LittleEndian.AppendUint16(head, uint16(m.Kind))
	head = binary.LittleEndian.AppendUint64(head, uint64(len(m.Body)))
	if _, err := w.Write(head); err != nil {
		return err
	}
	_, err := w.Write(m.Body)
	return err
}

// Read reads a message. It allocates in proportion to what arrives, not to what the header claims.
func Read(r io.Reader) (Message, error) {
	var head [headerSize]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return Message{}, ended(err)
	}
	if string(head[:4]) != magic {
		return Message{}, errors.New("not a message of gm")
	}
	if version := binary.LittleEndian.Uint16(head[4:]); version != Version {
		return Message{}, fmt.Errorf("message of version %d, expected %d: use gmstitch or gmswap and libgm.so of one build", version, Version)
	}
	m := Message{Kind: Kind(binary.LittleEndian.Uint16(head[6:]))}
	length, most := binary.LittleEndian.Uint64(head[8:]), bound(m.Kind)
	if most < 0 || length > uint64(most) {
		return Message{}, fmt.Errorf("message of kind %d with %d bytes: at most %d are allowed", m.Kind, length, max(most, 0))
	}
	var body bytes.Buffer
	if _, err := io.CopyN(&body, r, int64(length)); err != nil {
		return Message{}, ended(err)
	}
	m.Body = body.Bytes()
	return m, nil
}

// ErrEnded means that the other side closed before the message was whole.
var ErrEnded = errors.New("the connection ended within a message")

func ended(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrEnded
	}
	return err
}
