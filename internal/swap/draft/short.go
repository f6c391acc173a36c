package draft

import "fmt"

// ShortError is the error of a policy that has no schedule within the limits.
type ShortError struct {
	Policy string
	Bytes  int64 // missing to the closest schedule that the policy tried
	Op     int32 // the operator at which they are missing
	Host   bool  // of the host's memory and not of the device's
}

func (e *ShortError) Error() string {
	where := "device"
	if e.Host {
		where = "host"
	}
	return fmt.Sprintf("policy %s: no schedule keeps to the limits: %d bytes of %s memory are missing at operator %d", e.Policy, e.Bytes, where, e.Op)
}
