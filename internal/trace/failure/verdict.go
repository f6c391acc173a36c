package failure

import "gm/internal/torch/allocconf"

// Cause is why a request failed, in a word.
type Cause string

// The causes.
const (
	Full       Cause = "full"       // the tensors need more than there is: no allocator could have met it
	Fragmented Cause = "fragmented" // there is enough memory, but not in one piece that the allocator could use
	Limited    Cause = "limited"    // the device has room, or would have without other processes: a limit refused it
	Cached     Cause = "cached"     // a library asked for memory that PyTorch's allocator keeps, and does not use
	Unknown    Cause = "unknown"    // the trace lacks the segments
)

// Verdict says why a request failed.
type Verdict struct {
	Cause Cause `json:"cause"`
	Limit Limit `json:"limit"`           // what refused it, if the cause is Limited
	Need  int64 `json:"need_bytes"`      // no allocator meets the request with less: live blocks, those that are pending, and the request
	Room  int64 `json:"room_bytes"`      // what the allocator may have, at least: what it has reserved and can still take
	Most  int64 `json:"most_room_bytes"` // and at most: more than Room only for a limit of which only bounds are known
}

// Alone reports whether the request needs more than there was without any tensor beside it.
func (f *Failure) Alone() bool {
	return f.Cause == Full && f.By == "" && f.Need-f.Memory.Tensors() > f.Room
}

// Limit is what refused a request although the device had room.
type Limit string

// The limits.
const (
	NoLimit       Limit = ""
	Fraction      Limit = "fraction"  // the setting per_process_memory_fraction of PYTORCH_CUDA_ALLOC_CONF
	ProcessLimit  Limit = "process"   // set_per_process_memory_fraction, or another: the driver was not asked, or was not recorded
	DriverLimit   Limit = "driver"    // the driver refused it, and had memory: a limit of MPS, MIG or a container
	OtherPrograms Limit = "processes" // memory of other processes, and what the driver itself takes
)

// otherwise is how much of a device is in use outside of an idle one, in bytes: the driver's own memory, and that of a display.
const otherwise = 1 << 30

// Others returns what neither the process nor a free byte of the device accounts for; 0 if that is not known.
func (f *Failure) Others() int64 {
	if f.Capacity == 0 || f.Obtained == 0 {
		return 0
	}
	return max(f.Capacity-f.Obtained-f.Free, 0)
}

// mayReserve returns bounds of what the allocator may reserve if a limit refused its request: most is all that it ever reserved. Expandable
// segments grow by whole pages, which may be larger than what was compared with the limit.
func (s *state) mayReserve(most int64) (low, high int64) {
	low, high = most, s.limit-1
	if s.conf.Expandable {
		low -= s.conf.LargeSegment
	}
	if reserved := s.failure.Memory.Reserved; low > high { // the limit changed
		low, high = reserved, reserved+segmentSize(s.failure.Size, s.conf)-1
	}
	return low, high
}

// judge finds the cause, if what the allocator had reserved is known. It may reserve from low to high bytes if a limit refused the request.
func (f *Failure) judge(conf *allocconf.Conf, reservedKnown bool, low, high int64) {
	m := &f.Memory
	f.Need = m.Tensors() + roundUp(f.Size, allocconf.MinBlock)
	f.Room = m.Reserved + f.Free
	f.Most = f.Room
	switch {
	case !reservedKnown:
		f.Cause = Unknown
	case f.By != "":
		f.judgeLibrary()
	case f.Free >= deviceSize(f.Size, conf):
		f.Cause, f.Limit = Limited, f.limit(conf)
		f.Room, f.Most = low, high
	case f.Need <= f.Room:
		f.Cause = Fragmented
	case f.Others() > otherwise && f.Need <= f.Room+f.Others()-otherwise:
		f.Cause, f.Limit = Limited, OtherPrograms
	default:
		f.Cause = Full
	}
}

// limit says which limit refused a request for which the device had room.
func (f *Failure) limit(conf *allocconf.Conf) Limit {
	switch {
	case conf.MemoryFraction < 1:
		return Fraction
	case f.Refused:
		return DriverLimit
	}
	return ProcessLimit
}

// judgeLibrary judges a request that was not the framework's.
func (f *Failure) judgeLibrary() {
	switch idle := f.Memory.Idle.All(); {
	case f.Free >= f.Size:
		f.Cause, f.Limit = Limited, DriverLimit
	case f.Free+idle >= f.Size:
		f.Cause = Cached
	case f.Others() > otherwise && f.Free+idle+f.Others()-otherwise >= f.Size:
		f.Cause, f.Limit = Limited, OtherPrograms
	default:
		f.Cause = Full
	}
}
