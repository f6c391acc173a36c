package live

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// folderPrefix begins the name of a session's folder.
const folderPrefix = "gmtrace-"

// maxAnswer is the most bytes of an answer that are read.
const maxAnswer = 64 << 20

var (
	// ErrEnded means that a capture has ended, or never existed.
	ErrEnded = errors.New("the capture has ended")
	// ErrBusy means that a capture did not answer in time.
	ErrBusy = errors.New("the capture does not answer")
)

// Ask returns the present view of the capture in a session's folder. It waits a few seconds at most.
func Ask(folder string) (*View, error) {
	var conn net.Conn
	err := inFolder(folder, func(path string) (err error) {
		conn, err = net.DialTimeout("unix", path, patience)
		return err
	})
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, os.ErrNotExist) {
		return nil, ErrEnded
	} else if err != nil {
		return nil, fmt.Errorf("ask a capture: %w", err)
	}
	defer conn.Close()
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return nil, fmt.Errorf("ask a capture: %w", err)
	}
	var view View
	switch err := json.NewDecoder(io.LimitReader(conn, maxAnswer)).Decode(&view); {
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return nil, ErrEnded
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, ErrBusy
	case err != nil:
		return nil, fmt.Errorf("ask a capture: %w", err)
	}
	return &view, nil
}

// Folders returns this user's session folders in a folder of temporary files. Their captures may have ended.
func Folders(temporary string) []string {
	entries, err := os.ReadDir(temporary)
	if err != nil {
		return nil
	}
	var folders []string
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), folderPrefix) {
			continue
		}
		folder := filepath.Join(temporary, entry.Name())
		err := inFolder(folder, func(path string) error {
			_, err := os.Lstat(path)
			return err
		})
		if err == nil {
			folders = append(folders, folder)
		}
	}
	return folders
}
