package draft

import "fmt"

// ShortError says that no schedule of a policy keeps to the limits.
type ShortError struct {
	Policy string
	Bytes  int64 // that are missing to the one that comes closest of those it looked at
	Op     int32 // the operator at which they are
	Host   bool  // of the host's memory and not of the device's
}

func (e *ShortError) Error() string {
	where := "device"
	if e.Host {
		where = "host"
	}
	return fmt.Sprintf("policy %s: no schedule keeps to the limits: %d bytes of %s memory are missing at operator %d", e.Policy, e.Bytes, where, e.Op)
}
