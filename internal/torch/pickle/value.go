package pickle

// Kind says what a Value is.
type Kind uint8

const (
	Invalid Kind = iota // the zero Value: nothing
	None
	Bool
	Int
	Float
	Str
	Bytes
	Global // a name that the pickle imports, inert
	Tuple
	List // also sets
	Dict
	Token // what a Handler put in the place of a container
	wide  // an integer of more than 60 bits
	dead  // a container that was handed over and replaced by nothing
	spill // in the memo only: see memo.go
)

var kindNames = [...]string{"nothing", "None", "a bool", "an int", "a float", "a string", "bytes", "a global",
	"a tuple", "a list", "a dict", "a replaced container", "an int", "a container that was handed over", "a value"}

// String returns the kind with its article, for messages.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "an unknown kind"
}

// Value is a decoded value: its kind in the upper four bits, and in the others the value itself or an index into
// a table of the Decoder that made it.
type Value uint64

const (
	valueSize   = 8 // bytes
	payloadBits = 60
	payloadMask = 1<<payloadBits - 1
	maxInline   = 1<<(payloadBits-1) - 1
)

func makeValue(k Kind, payload uint64) Value { return Value(k)<<payloadBits | Value(payload) }

// Spent is what a Handler returns for a container that must not be referenced again: a pickle that does so is refused.
const Spent = Value(Token)<<payloadBits | payloadMask

// MakeToken returns a value for a Handler to put in the place of a container. The code must be below 2^60.
func MakeToken(code uint64) Value { return makeValue(Token, code&payloadMask) }

// Kind returns the kind of v.
func (v Value) Kind() Kind {
	k := Kind(v >> payloadBits)
	if k == wide {
		return Int
	}
	return k
}

// Token returns the code given to MakeToken.
func (v Value) Token() uint64 { return v.payload() }

// True reports whether v is the boolean True.
func (v Value) True() bool { return v == makeValue(Bool, 1) }

// Index returns the number of a string in the order in which strings were first seen: equal strings have equal
// numbers, so that a table can take the place of comparing them.
func (v Value) Index() int { return int(v.payload()) }

func (v Value) rawKind() Kind     { return Kind(v >> payloadBits) }
func (v Value) payload() uint64   { return uint64(v & payloadMask) }
func (v Value) isContainer() bool { k := v.rawKind(); return k >= Tuple && k <= Dict }

func (v Value) inline() int64 { return int64(v) << (64 - payloadBits) >> (64 - payloadBits) }

// integer is an integer that does not fit into a Value.
type integer struct {
	magnitude uint64
	negative  bool
	over      bool // its magnitude does not fit into 64 bits either
}

// Int64 returns an integer or boolean; false when v is neither or does not fit.
func (d *Decoder) Int64(v Value) (int64, bool) {
	switch v.rawKind() {
	case Int:
		return v.inline(), true
	case Bool:
		return int64(v.payload()), true
	case wide:
		n := d.wide[v.payload()]
		if n.over || n.magnitude > 1<<63 || n.magnitude == 1<<63 && !n.negative {
			return 0, false
		}
		if n.negative {
			return -int64(n.magnitude), true
		}
		return int64(n.magnitude), true
	}
	return 0, false
}

// Uint64 returns an integer as an address: an integer below zero, as C++ writes an address with its uppermost
// bit set, is taken modulo 2^64. It returns false when v is no integer or does not fit.
func (d *Decoder) Uint64(v Value) (uint64, bool) {
	if v.rawKind() == wide {
		n := d.wide[v.payload()]
		if n.over || n.negative && n.magnitude > 1<<63 {
			return 0, false
		}
		if n.negative {
			return -n.magnitude, true
		}
		return n.magnitude, true
	}
	n, ok := d.Int64(v)
	return uint64(n), ok
}

// Float64 returns a number of any kind as a float.
func (d *Decoder) Float64(v Value) (float64, bool) {
	if v.rawKind() == Float {
		return d.floats[v.payload()], true
	}
	if n, ok := d.Int64(v); ok {
		return float64(n), true
	}
	return 0, false
}

// Text returns a string, bytes or the name of a global; "" for all else.
func (d *Decoder) Text(v Value) string {
	switch v.rawKind() {
	case Str, Bytes, Global:
		return d.texts.list[v.payload()]
	}
	return ""
}

// Items returns the elements of a list or tuple, or the keys and values of a dict in turn, a key that was set
// twice being there twice. The slice is valid until the container is handed over and must not be changed.
func (d *Decoder) Items(v Value) []Value {
	if !v.isContainer() {
		return nil
	}
	return d.objects[v.payload()].items
}
