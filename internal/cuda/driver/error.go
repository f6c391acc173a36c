package driver

import (
	"errors"
	"fmt"

	"gm/internal/cuda"
)

// ErrShutdown means that the driver or the context is gone, as at the end of a process. All its memory is freed.
var ErrShutdown = errors.New("the CUDA driver is shut down")

// The codes of CUresult that are distinguished.
const (
	codeOutOfMemory        = 2
	codeDeinitialized      = 4
	codeInvalidValue       = 1
	codeNotReady           = 600
	codeContextIsDestroyed = 709
	codeCaptureUnsupported = 900
	codeCaptureImplicit    = 906
)

// Error is the error of a failed driver call.
type Error struct {
	Call string // the function, such as cuMemCreate
	Code int    // CUresult
	name string // of the code
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("%s: %s (%d)", e.Call, e.name, e.Code) }

// Unwrap returns cuda.ErrOutOfMemory, cuda.ErrCapturing or ErrShutdown for the codes that mean them, else nil.
func (e *Error) Unwrap() error {
	switch e.Code {
	case codeOutOfMemory:
		return cuda.ErrOutOfMemory
	case codeDeinitialized, codeContextIsDestroyed:
		return ErrShutdown
	case codeCaptureUnsupported, codeCaptureImplicit:
		return cuda.ErrCapturing
	}
	return nil
}
