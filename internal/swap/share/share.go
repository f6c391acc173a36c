// Package share is memory of a GPU that the processes of a user have by a key, such as the weights of a model: the first that opens the key
// makes the memory, fills it and freezes it, and the others map the same memory, read-only. The memory server holds a descriptor of it, so
// that it outlives the process that made it; it counts once, whoever maps it. A process that has it holds one, too, and gives that to a
// server that has lost its own.
//
// That is what Ravenstore's clients have of objects which others made (section 3), for contents that do not change. The driver refuses
// writes through a read-only mapping to accidents alone: a process of the same user that wants to could map it for writing.
package share

import (
	"errors"
	"fmt"
	"syscall"

	"gm/internal/cuda"
	"gm/internal/cuda/driver"
	"gm/internal/swap/server/wire"
)

// MaxKey bounds a key, in bytes.
const MaxKey = 255

// Memory is the memory of a key in this process. It is not safe for concurrent use.
type Memory struct {
	dev    *driver.Device
	key    string
	conn   *wire.Conn // nil once the memory is frozen
	use    use        // from then on
	p      cuda.Ptr
	size   int64       // of the memory, a multiple of cuda.Granularity; 0 before Make
	handle cuda.Handle // 0 once the memory is frozen: its mapping keeps it
	frozen bool
}

// Open opens a key at the server of a socket. If Size of what it returns is 0 there is no memory of that key, and this process is to make it:
// others that open the key wait until it is frozen or closed. So does Open.
func Open(path string, dev *driver.Device, key string) (*Memory, error) {
	if key == "" || len(key) > MaxKey {
		return nil, fmt.Errorf("a key has 1 to %d bytes", MaxKey)
	}
	if !dev.Shareable() {
		return nil, errors.New("the driver gives no file descriptors for the memory of this device")
	}
	bus, err := dev.PCIBusID()
	if err != nil {
		return nil, err
	}
	conn, err := wire.Dial(path)
	if err != nil {
		return nil, fmt.Errorf("%w; start one with gmswap serve", err)
	}
	request := wire.Message{Kind: wire.Open}
	request.SetText(key)
	request.SetCards([]wire.Card{{Bus: wire.BusOf(bus)}})
	m := &Memory{dev: dev, conn: conn, key: key, use: use{path: path, request: request, fd: -1}}
	if err := m.ask(); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", key, err), m.Close())
	}
	return m, nil
}

// ask sends the request for the memory, and maps what comes.
func (m *Memory) ask() (err error) {
	if err := m.conn.Send(&m.use.request); err != nil {
		return err
	}
	answer, fd, err := m.conn.ReceiveFile()
	if err != nil {
		return err
	}
	defer func() {
		if fd >= 0 && !m.frozen {
			err = errors.Join(err, syscall.Close(fd))
		}
	}()
	m.use.request.Memory = answer.Memory
	switch {
	case answer.Kind != wire.Given:
		return errors.New(answer.TextText())
	case answer.Amount == 0:
		return nil
	case fd < 0:
		return errors.New("the descriptor did not come: too many files may be open")
	}
	handle, err := m.dev.Import(fd, answer.Amount)
	if err != nil {
		return err
	}
	if err := m.place(handle, answer.Amount, m.dev.SetReadOnly); err != nil {
		return err
	}
	if err := m.letGo(); err != nil {
		return err
	}
	m.freeze(fd)
	return nil
}

// freeze notes that the memory is frozen, and keeps its descriptor for the servers.
func (m *Memory) freeze(fd int) {
	m.frozen, m.use.fd, m.use.size = true, fd, m.size
	m.use.begin(m.conn)
	m.conn = nil
}

// place maps memory at new addresses.
func (m *Memory) place(handle cuda.Handle, size int64, access func(cuda.Ptr, int64) error) error {
	p, err := m.dev.AddressReserve(size)
	if err != nil {
		return errors.Join(err, m.dev.Release(handle))
	}
	if err = m.dev.Map(p, handle); err != nil {
		return errors.Join(err, m.dev.Release(handle), m.dev.AddressFree(p, size))
	}
	if err = access(p, size); err != nil {
		return errors.Join(err, m.dev.Unmap(p, size), m.dev.Release(handle), m.dev.AddressFree(p, size))
	}
	m.p, m.size, m.handle = p, size, handle
	return nil
}

// letGo leaves the memory to its mapping.
func (m *Memory) letGo() error {
	err := m.dev.Release(m.handle)
	m.handle = 0
	return err
}

// Pointer returns where the memory is, 0 before Make.
func (m *Memory) Pointer() cuda.Ptr { return m.p }

// Size returns the bytes of the memory, which are rounded up to cuda.Granularity; 0 before Make.
func (m *Memory) Size() int64 { return m.size }

// Frozen reports whether the contents are there, and read-only.
func (m *Memory) Frozen() bool { return m.frozen }

// Make makes memory of at least size bytes, in which this process may write until Freeze.
func (m *Memory) Make(size int64) error {
	const most = 1 << 48
	if m.size > 0 {
		return fmt.Errorf("%s has its memory already", m.key)
	}
	if size <= 0 || size > most {
		return fmt.Errorf("%d bytes cannot be shared", size)
	}
	size = (size + cuda.Granularity - 1) / cuda.Granularity * cuda.Granularity
	handle, err := m.dev.Create(size)
	if err != nil {
		return fmt.Errorf("make %d bytes for %s: %w", size, m.key, err)
	}
	if err := m.place(handle, size, m.dev.SetAccess); err != nil {
		return fmt.Errorf("map %d bytes for %s: %w", size, m.key, err)
	}
	return nil
}

// Write copies contents into the memory from an offset on, before Freeze.
func (m *Memory) Write(offset int64, contents []byte) error {
	if m.frozen {
		return fmt.Errorf("%s is frozen", m.key)
	}
	if offset < 0 || offset > m.size || int64(len(contents)) > m.size-offset {
		return fmt.Errorf("%d bytes from %d on are not within the %d of %s", len(contents), offset, m.size, m.key)
	}
	return m.dev.MemcpyHtoD(m.p+cuda.Ptr(offset), contents)
}

// Freeze waits for the work of the device, makes the memory read-only, at the same address, and gives it to those that open the key: by the
// next server where this one has ended. After an error nobody has it but this process.
func (m *Memory) Freeze() error {
	if m.frozen || m.size == 0 {
		return fmt.Errorf("%s has no memory that could be frozen", m.key)
	}
	if err := m.dev.Synchronize(); err != nil {
		return fmt.Errorf("freeze %s: %w", m.key, err)
	}
	fd, err := m.dev.Export(m.handle)
	if err != nil {
		return fmt.Errorf("freeze %s: %w", m.key, err)
	}
	if err := m.dev.SetReadOnly(m.p, m.size); err != nil {
		return errors.Join(fmt.Errorf("make %s read-only: %w", m.key, err), syscall.Close(fd))
	}
	if err := give(m.conn, fd, m.size); errors.Is(err, errRefused) {
		m.frozen = true
		return errors.Join(fmt.Errorf("share %s: %w", m.key, err), m.letGo(), syscall.Close(fd))
	}
	m.freeze(fd)
	return m.letGo()
}

// Descriptor returns that by which the process keeps the memory for the servers, -1 unless it is frozen. A child that is forked and runs on
// is to close it.
func (m *Memory) Descriptor() int { return m.use.fd }

// Close waits for the work of the device and unmaps the memory, which stays for others where it is frozen.
func (m *Memory) Close() (err error) {
	defer func() { err = errors.Join(err, m.leave()) }()
	if m.size == 0 {
		return nil
	}
	if err := m.dev.Synchronize(); err != nil {
		return fmt.Errorf("close %s: %w", m.key, err)
	}
	err = errors.Join(m.dev.Unmap(m.p, m.size), m.dev.AddressFree(m.p, m.size))
	if m.handle != 0 {
		err = errors.Join(err, m.letGo())
	}
	return err
}

// leave ends the use.
func (m *Memory) leave() error {
	if m.conn == nil {
		return m.use.close()
	}
	m.conn.HangUp() // a forked child may have it open
	return m.conn.Close()
}
