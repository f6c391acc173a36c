package nvml

import (
	"errors"
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// Library is NVML, loaded and initialised. Its methods and those of its devices may be called from any goroutine until Close.
type Library struct {
	api driver
}

// driver is the part of go-nvml that is used.
type driver interface {
	Init() nvml.Return
	Shutdown() nvml.Return
	DeviceGetCount() (int, nvml.Return)
	DeviceGetHandleByIndex(index int) (nvml.Device, nvml.Return)
	DeviceGetHandleByUUID(uuid string) (nvml.Device, nvml.Return)
	LookupSymbol(name string) error
}

// installed is the library of the installed driver.
type installed struct {
	nvml.Interface
}

// LookupSymbol fails when the library lacks a function.
func (l installed) LookupSymbol(name string) error { return l.Extensions().LookupSymbol(name) }

// needed lists the functions that every driver since 2012 has.
var needed = [...]string{
	"nvmlErrorString", "nvmlShutdown", "nvmlDeviceGetCount_v2", "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByUUID",
	"nvmlDeviceGetName", "nvmlDeviceGetUUID",
}

var (
	errNoLibrary = errors.New("libnvidia-ml.so.1 cannot be loaded: is NVIDIA's driver installed?")
	errNoGPU     = errors.New("the driver reports no GPU")
)

// Open loads and initialises the library. It fails without a driver or a GPU. The caller must close the library.
func Open() (*Library, error) {
	l, err := start(installed{nvml.New()})
	if err != nil {
		return nil, fmt.Errorf("open NVML: %w", err)
	}
	return l, nil
}

func start(api driver) (*Library, error) {
	switch code := api.Init(); code {
	case nvml.SUCCESS:
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		return nil, errNoLibrary
	default:
		return nil, code
	}
	l := &Library{api}
	if err := l.check(); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// check returns an error if a needed function or a GPU is missing.
func (l *Library) check() error {
	for _, name := range needed {
		if l.api.LookupSymbol(name) != nil {
			return fmt.Errorf("libnvidia-ml.so.1 has no function %s", name)
		}
	}
	switch n, code := l.api.DeviceGetCount(); {
	case code != nvml.SUCCESS:
		return fmt.Errorf("count GPUs: %w", code)
	case n == 0:
		return errNoGPU
	}
	return nil
}

// Close shuts the library down. Its devices must not be used afterwards.
func (l *Library) Close() error {
	if l.api.LookupSymbol("nvmlShutdown") != nil {
		return nil
	}
	if code := l.api.Shutdown(); code != nvml.SUCCESS {
		return fmt.Errorf("close NVML: %w", code)
	}
	return nil
}

// has reports whether the library has one of the functions.
func (l *Library) has(names ...string) bool {
	for _, name := range names {
		if l.api.LookupSymbol(name) == nil {
			return true
		}
	}
	return false
}
