package snapshot

import (
	"gm/formats/trace"
	"gm/internal/torch/pickle"
)

// field is a key of one of the snapshot's dicts.
type field uint8

const (
	fieldUnseen field = iota // not looked up yet
	fieldOther
	fieldAction
	fieldAddr
	fieldSize
	fieldStream
	fieldTime
	fieldFrames
	fieldMetadata
	fieldPool
	fieldDevice
	fieldAddress
	fieldTotalSize
	fieldExpandable
	fieldRequested
	fieldState
	fieldHistory
	fieldRealSize
	fieldFilename
	fieldName
	fieldLine
	fieldStage
)

func fieldOf(key string) field {
	switch key {
	case "action":
		return fieldAction
	case "addr", "device_free": // an oom entry has the free bytes of the device in the place of an address
		return fieldAddr
	case "size":
		return fieldSize
	case "stream":
		return fieldStream
	case "time_us":
		return fieldTime
	case "frames":
		return fieldFrames
	case "user_metadata":
		return fieldMetadata
	case "pool_id", "segment_pool_id":
		return fieldPool
	case "device":
		return fieldDevice
	case "address":
		return fieldAddress
	case "total_size":
		return fieldTotalSize
	case "is_expandable":
		return fieldExpandable
	case "requested_size":
		return fieldRequested
	case "state":
		return fieldState
	case "history":
		return fieldHistory
	case "real_size":
		return fieldRealSize
	case "filename":
		return fieldFilename
	case "name":
		return fieldName
	case "line":
		return fieldLine
	case "stage":
		return fieldStage
	}
	return fieldOther
}

// meanings are what strings mean, by their numbers; the zero T stands for one that was not looked up yet.
type meanings[T any] []T

// at returns where the meaning of a string is kept.
func (m *meanings[T]) at(i int) *T {
	if i >= len(*m) {
		*m = append(*m, make([]T, i+1-len(*m))...)
	}
	return &(*m)[i]
}

// field returns what key means.
func (s *snapshot) field(key pickle.Value) field {
	if key.Kind() != pickle.Str {
		return fieldOther
	}
	known := s.fields.at(key.Index())
	if *known == fieldUnseen {
		*known = fieldOf(s.dec.Text(key))
	}
	return *known
}

// action is what an event does, plus 1; or one of these.
type action int8

const (
	actionUnseen  action = 0
	actionUnknown action = -1
)

func actionOf(name string) action {
	switch name {
	case "alloc":
		return action(trace.OpAlloc) + 1
	case "free_requested":
		return action(trace.OpFreeRequested) + 1
	case "free_completed":
		return action(trace.OpFreeCompleted) + 1
	case "segment_alloc":
		return action(trace.OpSegmentAlloc) + 1
	case "segment_free":
		return action(trace.OpSegmentFree) + 1
	case "segment_map":
		return action(trace.OpSegmentMap) + 1
	case "segment_unmap":
		return action(trace.OpSegmentUnmap) + 1
	case "oom":
		return action(trace.OpOOM) + 1
	case "snapshot":
		return action(trace.OpSnapshot) + 1
	case "user_defined":
		return action(trace.OpMark) + 1
	}
	return actionUnknown
}

func (s *snapshot) action(name pickle.Value) action {
	if name.Kind() != pickle.Str {
		return actionUnknown
	}
	known := s.actions.at(name.Index())
	if *known == actionUnseen {
		*known = actionOf(s.dec.Text(name))
	}
	return *known
}
