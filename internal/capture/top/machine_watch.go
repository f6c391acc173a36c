package top

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"gm/internal/cli"
	"gm/internal/nvml"
)

// MachineViewer shows all processes on the GPUs of this machine.
type MachineViewer struct {
	c       *cli.Context
	library *nvml.Library
	devices []*nvml.Device
}

// OpenMachine opens NVML. It fails without a driver or a GPU. The caller must close the viewer.
func OpenMachine(c *cli.Context) (*MachineViewer, error) {
	library, err := nvml.Open()
	if err != nil {
		return nil, err
	}
	devices, err := library.Devices()
	if err != nil {
		return nil, errors.Join(err, library.Close())
	}
	return &MachineViewer{c, library, devices}, nil
}

// Close closes NVML.
func (v *MachineViewer) Close() error { return v.library.Close() }

// Read asks NVML.
func (v *MachineViewer) Read() *Machine { return readMachine(v.devices) }

// Print prints the page as plain text.
func (v *MachineViewer) Print() error {
	var text strings.Builder
	for _, line := range v.Read().lines(plainWidthOf(v.c.Out), 1<<16, "") {
		text.WriteString(strings.TrimRight(line.text, " ") + "\n")
	}
	_, err := io.WriteString(v.c.Out, text.String())
	return err
}

// Watch shows the page, every Refresh anew, until the user quits.
func (v *MachineViewer) Watch() error {
	release := v.c.OwnSignals()
	defer release()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, cli.Heeded(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)...)
	defer signal.Stop(signals)
	s, err := openScreen()
	if err != nil {
		return err
	}
	sig, err := v.show(s, signals)
	if err := errors.Join(err, s.close()); err != nil {
		return err
	}
	if sig != nil {
		return cli.Status(128 + int(sig.(syscall.Signal)))
	}
	return nil
}

// show shows the page until the user quits, or a signal comes.
func (v *MachineViewer) show(s *screen, signals <-chan os.Signal) (os.Signal, error) {
	tick := time.NewTicker(Refresh)
	defer tick.Stop()
	m := v.Read()
	for {
		width, height := s.size()
		if err := s.draw(m.lines(width, height, "q quit")); err != nil {
			return nil, err
		}
		select {
		case <-tick.C:
			m = v.Read()
		case k := <-s.keys:
			if k == keyQuit || k == keyInterrupt {
				return nil, nil
			}
		case <-s.resized:
		case sig := <-signals:
			return sig, nil
		}
	}
}
