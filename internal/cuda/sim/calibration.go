package sim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"gm/internal/jsonvalue"
)

// Calibration is a cost table with the device that it was measured on. gmbench calibrate writes it as JSON: costs is an object that maps
// the name of each call to its curve, a list of {bytes, ns}.
type Calibration struct {
	Device string    `json:"device"`           // the product's name
	Driver string    `json:"driver,omitempty"` // version of the kernel driver, such as 580.159.03
	CUDA   string    `json:"cuda,omitempty"`   // newest CUDA version that the driver supports, such as 13.0
	Costs  CostTable `json:"costs"`
}

// maxCalibration is the largest file that is read, in bytes.
const maxCalibration = 1 << 20

// ReadCalibration reads and checks a file that gmbench calibrate wrote. Errors name the file and the fault in it.
func ReadCalibration(path string) (c Calibration, err error) {
	f, err := os.Open(path)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if c, err = readCalibration(f); err != nil {
		return c, fmt.Errorf("costs %s: %w", path, err)
	}
	return c, nil
}

func readCalibration(r io.Reader) (c Calibration, err error) {
	text, err := io.ReadAll(io.LimitReader(r, maxCalibration+1))
	if err != nil {
		return c, err
	}
	if len(text) > maxCalibration {
		return c, fmt.Errorf("more than %d bytes", maxCalibration)
	}
	var file struct {
		Calibration
		Costs *CostTable `json:"costs"`
	}
	if err := jsonvalue.Explain(json.Unmarshal(text, &file)); err != nil {
		return c, err
	}
	if file.Costs == nil {
		return c, errors.New("no costs: gmbench calibrate writes them")
	}
	file.Calibration.Costs = *file.Costs
	return file.Calibration, nil
}

// Write writes c as JSON that ReadCalibration reads.
func (c Calibration) Write(w io.Writer) error {
	out := json.NewEncoder(w)
	out.SetIndent("", " ")
	return out.Encode(c)
}

// MarshalJSON implements json.Marshaler. The object maps names of calls to curves, in the order of the calls.
func (t CostTable) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	for call, curve := range t {
		if Call(call) == Clear && len(curve) == 0 {
			continue
		}
		points, err := json.Marshal(curve)
		if err != nil {
			return nil, err
		}
		separator := ','
		if call == 0 {
			separator = '{'
		}
		fmt.Fprintf(&out, "%c%q:%s", separator, Call(call), points)
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// UnmarshalJSON implements json.Unmarshaler. Exactly the known calls must be there, with growing sizes and costs from 0 to a minute. In
// files written before clearing was measured separately, the costs of MemAlloc and Create include it.
func (t *CostTable) UnmarshalJSON(text []byte) error {
	var curves map[string]Curve
	if err := jsonvalue.Explain(json.Unmarshal(text, &curves)); err != nil {
		return err
	}
	*t = CostTable{}
	for name, curve := range curves {
		call, known := callByName(name)
		if !known {
			return fmt.Errorf("%q is none of the calls that have a cost", name)
		}
		t[call] = curve
	}
	for call, curve := range t {
		if Call(call) == Clear && len(curve) == 0 {
			continue
		}
		if err := curve.check(); err != nil {
			return fmt.Errorf("%s: %w", Call(call), err)
		}
	}
	return nil
}

func (c Curve) check() error {
	if len(c) == 0 {
		return errors.New("no cost")
	}
	for i, p := range c {
		switch {
		case p.Bytes < 0:
			return fmt.Errorf("point %d: %d bytes", i+1, p.Bytes)
		case i > 0 && p.Bytes <= c[i-1].Bytes:
			return fmt.Errorf("point %d: %d bytes after %d, sizes must grow", i+1, p.Bytes, c[i-1].Bytes)
		case p.Cost < 0 || p.Cost > maxCost:
			return fmt.Errorf("point %d: a cost of %d ns is not within 0 and a minute", i+1, p.Cost.Nanoseconds())
		}
	}
	return nil
}
