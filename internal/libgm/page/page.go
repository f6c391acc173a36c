// Package page is how a process that uses libgm.so shows its account to others of the same user: a small file that is mapped by the
// library, which keeps its counters in it, and read by the others, who do not trust it.
package page

import "unsafe"

// Devices is how many devices a page has room for.
const Devices = 32

// Counter is one number over time, as in torch.cuda.memory_stats.
type Counter struct {
	Current   int64 `json:"current"`
	Peak      int64 `json:"peak"`
	Allocated int64 `json:"allocated"`
	Freed     int64 `json:"freed"`
}

// Add counts n more.
func (c *Counter) Add(n int64) {
	c.Current += n
	c.Allocated += n
	if c.Current > c.Peak {
		c.Peak = c.Current
	}
}

// Sub counts n less.
func (c *Counter) Sub(n int64) {
	c.Current -= n
	c.Freed += n
}

// The kinds that every quantity is counted for: requests of up to 1 MiB are small ones.
const (
	All = iota
	Small
	Large
	Kinds
)

// Account is struct gm_stats of gm.h, where each field is explained.
type Account struct {
	Allocation     [Kinds]Counter `json:"allocation"`
	AllocatedBytes [Kinds]Counter `json:"allocated_bytes"`
	RequestedBytes [Kinds]Counter `json:"requested_bytes"`
	ActiveBytes    [Kinds]Counter `json:"active_bytes"`
	ReservedBytes  [Kinds]Counter `json:"reserved_bytes"`
	Segment        [Kinds]Counter `json:"segment"`
	Retries        int64          `json:"retries"`
	OOMs           int64          `json:"ooms"`
	Stitches       int64          `json:"stitches"`
	DriverCalls    int64          `json:"driver_calls"`
	DriverNS       int64          `json:"driver_ns"`
}

// Device is what a page holds of one device.
type Device struct {
	Version uint64 // odd while the account changes
	Total   int64  // bytes of the device; 0 if the process has not used it
	Account Account
}

// header begins a page.
type header struct {
	Magic   [8]byte
	Started int64 // nanoseconds since the Unix epoch
	Size    int64 // of the page
}

const magic = "gmpage02"

// Page is the file as a whole.
type Page struct {
	header  header
	Devices [Devices]Device
}

const (
	pageSize   = int(unsafe.Sizeof(Page{}))
	deviceSize = int(unsafe.Sizeof(Device{}))
)
