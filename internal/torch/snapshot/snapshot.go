package snapshot

import (
	"errors"
	"fmt"
	"io"

	"gm/internal/torch/pickle"
)

// The parts of a snapshot that are taken out of the stream. In the oldest snapshots the list of segments is all.
const (
	roleRoot pickle.Role = iota + 1
	roleSegments
	roleSegment
	roleBlocks
	roleBlock
	roleHistory
	roleHistoryEntry
	roleFrames
	roleFrame
	roleTraces
	roleTrace
	roleEvent
	roleMarks
	roleMark
	roleIgnored
)

// entries takes the entries of the devices' traces, each device's in order.
type entries interface {
	add(device int32, r record) error
}

// snapshot is the state of the first pass over one snapshot.
type snapshot struct {
	rec     *recording
	entries entries
	dec     *pickle.Decoder
	fields  meanings[field]
	actions meanings[action]
	pools   map[pickle.Value]int32

	device int32 // of the trace being read
	events int   // read of it
	read   int   // segments

	blocks []block // of the segment being read
	former former  // of the block being read
	known  bool    // the input has a part of a snapshot
	wrong  error   // the first container that is not of the kind it has to be

	last last
}

// last is what a snapshot says of the time at which it was taken.
type last struct {
	segments map[int32][]segment // by device
	marks    []mark
	conf     string
	tracked  int
}

// decode makes the first pass over a snapshot, whose entries go to to, and hands the rest to rec when it is whole.
func decode(in io.Reader, rec *recording, to entries) (last, error) {
	s := &snapshot{
		rec: rec, entries: to, pools: make(map[pickle.Value]int32), last: last{segments: make(map[int32][]segment)},
	}
	s.dec = pickle.NewDecoder(in, s)
	top, err := s.dec.Decode()
	if err != nil {
		return s.last, fmt.Errorf("read snapshot: %w", err)
	}
	if s.wrong != nil {
		return s.last, s.wrong
	}
	if k := top.Kind(); !s.known && k != pickle.Token {
		return s.last, fmt.Errorf("%v is not a memory snapshot", k)
	}
	return s.last, nil
}

// Role implements pickle.Handler.
func (s *snapshot) Role(parent pickle.Role, key string, index int, kind pickle.Kind) pickle.Role {
	switch parent {
	case 0:
		return topRole(kind)
	case roleRoot:
		return s.rootRole(key, kind)
	case roleTraces:
		if kind == pickle.List {
			s.device, s.events = int32(index), 0
			return roleTrace
		}
	case roleTrace:
		return dictRole(kind, roleEvent)
	case roleSegments:
		return dictRole(kind, roleSegment)
	case roleBlocks:
		return dictRole(kind, roleBlock)
	case roleHistory:
		return dictRole(kind, roleHistoryEntry)
	case roleFrames:
		return dictRole(kind, roleFrame)
	case roleMarks:
		return dictRole(kind, roleMark)
	case roleIgnored:
		return roleIgnored
	default:
		return s.keyRole(parent, key, kind)
	}
	return 0
}

func topRole(kind pickle.Kind) pickle.Role {
	switch kind {
	case pickle.Dict:
		return roleRoot
	case pickle.List:
		return roleSegments
	}
	return 0
}

func dictRole(kind pickle.Kind, role pickle.Role) pickle.Role {
	if kind == pickle.Dict {
		return role
	}
	return 0
}

func (s *snapshot) rootRole(key string, kind pickle.Kind) pickle.Role {
	if key == "allocator_settings" {
		return 0
	}
	switch key {
	case "segments":
		s.known = true
		return s.listRole(key, kind, roleSegments)
	case "device_traces":
		s.known = true
		return s.listRole(key, kind, roleTraces)
	case "external_annotations":
		return s.listRole(key, kind, roleMarks)
	}
	return roleIgnored
}

// keyRole is the role of a container in a segment, block, event or such.
func (s *snapshot) keyRole(parent pickle.Role, key string, kind pickle.Kind) pickle.Role {
	switch {
	case key == "frames":
		return s.listRole(key, kind, roleFrames)
	case key == "blocks" && parent == roleSegment:
		return s.listRole(key, kind, roleBlocks)
	case key == "history" && parent == roleBlock:
		return s.listRole(key, kind, roleHistory)
	case kind == pickle.Tuple && (key == "pool_id" || key == "segment_pool_id"):
		return 0
	}
	return roleIgnored
}

// listRole is the role of a container that has to be a list.
func (s *snapshot) listRole(key string, kind pickle.Kind, role pickle.Role) pickle.Role {
	if kind == pickle.List {
		return role
	}
	if s.wrong == nil {
		is := kind.String()
		if kind != pickle.Tuple {
			is += " or a tuple of one"
		}
		s.wrong = fmt.Errorf("read snapshot: %s is %s, expected a list", key, is)
	}
	return roleIgnored
}

// Complete implements pickle.Handler.
func (s *snapshot) Complete(role pickle.Role, v pickle.Value) (pickle.Value, error) {
	switch role {
	case roleEvent:
		return 0, s.event(v)
	case roleFrame:
		return s.frame(v)
	case roleFrames:
		return s.framesDone(v)
	case roleSegment:
		return 0, s.segment(v)
	case roleBlock:
		return 0, s.block(v)
	case roleHistoryEntry:
		return 0, s.historyEntry(v)
	case roleMark:
		return 0, s.mark(v)
	case roleRoot:
		return v, s.root(v)
	case roleIgnored:
		return noValue, nil
	case roleTraces:
	default:
		if items := s.dec.Items(v); len(items) > 0 {
			return 0, fmt.Errorf("a list of dicts holds %v", items[0].Kind())
		}
	}
	if s.empty(role) {
		return noValue, nil
	}
	return pickle.Spent, nil
}

// empty says that the list of records that is complete has none.
func (s *snapshot) empty(role pickle.Role) bool {
	switch role {
	case roleTrace:
		return s.events == 0
	case roleBlocks:
		return len(s.blocks) == 0
	case roleHistory:
		return !s.former.known
	}
	return false
}

// noValue stands for what is not looked at.
var noValue = pickle.MakeToken(stackToken)

// root reads what is left of the snapshot when all else has been handed over: the settings.
func (s *snapshot) root(v pickle.Value) error {
	items := s.dec.Items(v)
	for i := len(items) - 2; i >= 0; i -= 2 {
		if s.dec.Text(items[i]) == "allocator_settings" {
			s.last.conf = allocConf(s.dec, items[i+1])
			break
		}
	}
	if !s.known {
		return errors.New("a dict with neither segments nor device_traces is not a memory snapshot")
	}
	return nil
}

// track counts n more things of the end that are kept in memory for the second pass.
func (s *snapshot) track(n int) error {
	s.last.tracked += n
	return s.rec.track(n)
}

// pool returns the code of the name of a pool, given as a pair of numbers; -1 when v is none.
func (s *snapshot) pool(v pickle.Value) (int32, error) {
	if v.Kind() != pickle.Tuple {
		return -1, nil
	}
	if code, ok := s.pools[v]; ok {
		return code, nil
	}
	code := int32(-1)
	if pair := s.dec.Items(v); len(pair) == 2 {
		a, okA := s.dec.Uint64(pair[0])
		b, okB := s.dec.Uint64(pair[1])
		switch {
		case !okA || !okB:
		case a == 0 && b == 0:
			code = 0
		default:
			code = s.rec.texts.Code(fmt.Sprintf("%d.%d", a, b))
		}
	}
	if s.pools[v] = code; len(s.pools) > maxPools {
		return 0, fmt.Errorf("more than %d pools", maxPools)
	}
	return code, nil
}

// integer returns v as an integer of at least min.
func (s *snapshot) integer(key string, v pickle.Value, min int64) (int64, error) {
	n, ok := s.dec.Int64(v)
	if !ok || n < min {
		return 0, s.bad(key, v)
	}
	return n, nil
}

func (s *snapshot) address(key string, v pickle.Value) (uint64, error) {
	n, ok := s.dec.Uint64(v)
	if !ok {
		return 0, s.bad(key, v)
	}
	return n, nil
}

func (s *snapshot) bad(key string, v pickle.Value) error {
	if n, ok := s.dec.Int64(v); ok {
		return fmt.Errorf("%s is %d", key, n)
	}
	if v.Kind() == pickle.Int {
		return fmt.Errorf("%s is out of range", key)
	}
	return fmt.Errorf("%s is %v", key, v.Kind())
}
