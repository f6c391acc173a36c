// Package wire is what the memory server, the jobs and gmswap ctl say to each other: messages of one fixed size over a SOCK_SEQPACKET unix
// socket.
package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// Version is that of the messages. A server and a job of different versions refuse each other.
const Version = 4

const magic = 0x56534d47 // "GMSV"

// Kind says what a message is.
type Kind uint16

// The kinds of messages, with the fields that they use besides Seq.
const (
	_ Kind = iota

	// From a job.
	Hello    // State, Name, Cards; the first message
	Report   // State, Idle, Pinned, Cards, Text (why it cannot sleep, "" if it can): twice a second, and when something has changed
	WantWake // a thread waits for memory that is away
	WantRoom // Cards[0]: Away bytes are missing for an allocation
	Done     // of the order Seq. State, Cards; Text is "" or why it failed; Amount is how many bytes were moved, Took how long that took

	// To a job.
	Welcome // Amount: the most that the job may take of each card, 0 for all
	Sleep   // an order: move Amount bytes to the host, all if that is 0; Pinned bounds the job's pinned memory; Cards[0].Bus is the card that it is for, if any
	Wake    // an order: bring all back; Amount: 1 if another job is leaving the room for it, 0 if the room is there
	Prepare // Pinned: pin so much host memory for a later Sleep, as long as the job is idle
	Room    // answers WantRoom Seq: Amount is 1 if it is worth trying again, 0 if no room can be made, Text says why

	// From gmswap ctl. Name is a job's, or its process id.
	List
	CtlSleep // Amount: 1 to hold the job until CtlWake
	CtlWake

	// To gmswap ctl.
	Job // one for each: PID, UID, State, Name, Idle, Pinned, Cards, Amount (the quota), Text (why it waits or cannot sleep)
	End // Text: "" or an error; Amount bytes were moved, which Took some time

	// From a process that shares memory by a key, on a connection of its own for each use of a key, which ends with it.
	Open // Text (the key), Cards[0].Bus, Memory: 0, or what this process has since a server that has ended; the first message
	Keep // Amount, with a descriptor: the memory of this key, of Amount bytes. Answered by End

	// To such a process. After that End says that the memory is no longer shared.
	Given // answers Open: Memory, of Amount bytes, with a descriptor unless the process has it; 0 and none: it is to send Keep, and others wait

	// From and to gmswap ctl.
	CtlDrop // Text (a key)
	Shared  // one for each key: PID (which made it), UID, Text (the key), Cards[0] (Here bytes), Amount (uses)

	kinds
)

// State is what a job does.
type State uint16

// The states of a job.
const (
	Awake   State = iota
	Asleep        // all of its memory, or some, is on the host, and its gate is closed
	Waiting       // asleep or awake, and it waits for memory of the card
	Storing       // a store of objects: awake, and what nobody uses may go to the host at any time
	states
)

func (s State) String() string {
	if s >= states {
		return fmt.Sprintf("state %d", uint16(s))
	}
	return [...]string{"awake", "asleep", "waiting", "objects"}[s]
}

// MaxCards bounds the GPUs of a job.
const MaxCards = 8

// Card is the memory of a GPU, as a job sees it, in bytes.
type Card struct {
	Bus         [16]byte // its PCI address
	Total, Free int64    // of the card, with all that use it; 0 where the job cannot tell
	Here, Away  int64    // of the job: on the card, and elsewhere
	Evictable   int64    // on the card, and of a store, which can give it up at once; its Idle is how long those that go first were not used
}

// Message is all that is ever sent.
type Message struct {
	Magic   uint32
	Version uint16
	Kind    Kind
	Seq     uint64 // of an order or a request, for its answer
	PID     int32
	UID     uint32
	State   State
	Count   uint16 // of Cards
	_       uint32
	Idle    int64 // nanoseconds since the job's last launch or copy
	Pinned  int64 // bytes of the host
	Amount  int64
	Took    int64 // nanoseconds

	Memory [16]byte // which memory a key stands for: a random number

	Name  [64]byte
	Text  [256]byte
	Cards [MaxCards]Card
}

// Size is that of a message, in bytes.
var Size = binary.Size(Message{})

// ErrMessage means that what came is no message.
var ErrMessage = errors.New("this is no message of the memory server")

// VersionError says that the other side is of another version.
type VersionError struct{ Version uint16 }

func (e *VersionError) Error() string {
	return fmt.Sprintf("the other side speaks version %d of the memory server's protocol, this one version %d", e.Version, Version)
}

// Encode returns the bytes of a message.
func (m *Message) Encode() []byte {
	m.Magic, m.Version = magic, Version
	b := make([]byte, Size)
	if _, err := binary.Encode(b, binary.LittleEndian, m); err != nil {
		panic("BUG: " + err.Error())
	}
	return b
}

// Decode reads a message. What it accepts is within its bounds.
func Decode(b []byte) (m Message, err error) {
	if len(b) < 6 || binary.LittleEndian.Uint32(b) != magic {
		return m, ErrMessage
	}
	if v := binary.LittleEndian.Uint16(b[4:]); v != Version {
		return m, &VersionError{v}
	}
	if len(b) != Size {
		return m, ErrMessage
	}
	if _, err := binary.Decode(b, binary.LittleEndian, &m); err != nil {
		return m, fmt.Errorf("%w: %w", ErrMessage, err)
	}
	if m.Kind == 0 || m.Kind >= kinds || m.State >= states || m.Count > MaxCards || m.Idle < 0 || m.Took < 0 || outside(m.Pinned, m.Amount) {
		return m, ErrMessage
	}
	for _, c := range m.Cards {
		if outside(c.Total, c.Free, c.Here, c.Away, c.Evictable) {
			return m, ErrMessage
		}
	}
	return m, nil
}

// outside says whether a number of bytes is none.
func outside(amounts ...int64) bool {
	const most = 1 << 50
	for _, n := range amounts {
		if n < 0 || n > most {
			return true
		}
	}
	return false
}

// SetName sets the name, which is cut off where it is too long.
func (m *Message) SetName(name string) { set(m.Name[:], name) }

// SetText sets the text, which is cut off where it is too long.
func (m *Message) SetText(text string) { set(m.Text[:], text) }

func set(to []byte, text string) {
	clear(to)
	copy(to[:len(to)-1], text)
}

// NameText returns the name.
func (m *Message) NameText() string { return text(m.Name[:]) }

// TextText returns the text.
func (m *Message) TextText() string { return text(m.Text[:]) }

// text returns what comes before the first 0, with what a terminal would not print replaced.
func text(b []byte) string {
	b, _, _ = bytes.Cut(b, []byte{0})
	return string(bytes.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return '?'
		}
		return r
	}, b))
}

// SetCards sets the cards, at most MaxCards.
func (m *Message) SetCards(cards []Card) { m.Count = uint16(copy(m.Cards[:], cards)) }

// CardList returns the cards.
func (m *Message) CardList() []Card { return m.Cards[:m.Count:m.Count] }

// BusOf makes the address of a card from a text such as 0000:1B:00.0.
func BusOf(address string) (bus [16]byte) {
	copy(bus[:], address)
	return bus
}

// BusText returns the card's PCI address.
func (c *Card) BusText() string { return text(c.Bus[:]) }
