package main

import (
	"errors"
	"sync"
	"time"

	"gm/internal/cuda"
	"gm/internal/cuda/driver"
	"gm/internal/swap/server/wire"
)

// visitor is a process that keeps memory in a store or under a key. It may be no job of the memory server, and then has no gate that would
// make room for its context.
type visitor struct {
	library      *driver.Library
	server, name string
}

// open opens a device. Where that has no room for a context, the server makes some. For a job its gate has asked already.
func (v visitor) open(ordinal int) (*driver.Device, error) {
	const tries = 20
	dev, err := v.library.Open(ordinal)
	if self.serving.Load() != nil {
		return dev, err
	}
	for made, n := true, 0; errors.Is(err, cuda.ErrOutOfMemory) && made && n < tries; n++ {
		made = v.room(ordinal) == nil // some, where not all
		dev, err = v.library.Open(ordinal)
	}
	return dev, err
}

// room waits until the server has made room for a context.
func (v visitor) room(ordinal int) error {
	bus, err := v.library.PCIBusID(ordinal)
	if err != nil {
		return err
	}
	conn, err := wire.Dial(v.server)
	if err != nil {
		return err
	}
	defer conn.Close()
	hello := wire.Message{Kind: wire.Hello}
	hello.SetName(v.name)
	want := wire.Message{Kind: wire.WantRoom, Seq: 1}
	want.SetCards([]wire.Card{{Bus: wire.BusOf(bus), Away: cudaRoom}})
	if err := errors.Join(conn.Send(&hello), conn.Send(&want)); err != nil {
		return err
	}
	answered := make(chan struct{})
	var reports sync.WaitGroup
	reports.Go(func() { report(conn, answered) })
	defer reports.Wait()
	defer close(answered)
	for {
		m, err := conn.Receive()
		switch {
		case err != nil:
			return err
		case m.Kind == wire.Room && m.Amount == 0:
			return errors.New(m.TextText())
		case m.Kind == wire.Room:
			return nil
		}
	}
}

// report tells the server every now and then that the process still waits.
func report(conn *wire.Conn, answered <-chan struct{}) {
	t := time.NewTicker(beat)
	defer t.Stop()
	for {
		select {
		case <-answered:
			return
		case <-t.C:
		}
		if err := conn.Send(&wire.Message{Kind: wire.Report}); err != nil {
			conn.HangUp()
			return
		}
	}
}
