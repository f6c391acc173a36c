package blocks

import (
	"errors"
	"fmt"

	"gm/internal/cuda"
)

// chunkSize is GMLake's uniform size of physical memory.
const chunkSize = cuda.Granularity

// createChunks creates physical memory for size bytes. When the device is full it undoes what it did and returns an error that is
// cuda.ErrOutOfMemory.
func createChunks(dev cuda.Device, size int64) ([]cuda.Handle, error) {
	free, _, err := dev.MemInfo()
	if err != nil {
		return nil, fmt.Errorf("read the free memory of the device: %w", err)
	}
	if size > free {
		return nil, fmt.Errorf("create chunks for %d bytes: %w", size, cuda.ErrOutOfMemory)
	}
	chunks := make([]cuda.Handle, 0, size/chunkSize)
	for range size / chunkSize {
		h, err := dev.Create(chunkSize)
		if err != nil {
			return nil, fmt.Errorf("create chunks: %w", errors.Join(err, releaseChunks(dev, chunks)))
		}
		chunks = append(chunks, h)
	}
	return chunks, nil
}

func releaseChunks(dev cuda.Device, chunks []cuda.Handle) error {
	for _, h := range chunks {
		if err := dev.Release(h); err != nil {
			return fmt.Errorf("release a chunk: %w", err)
		}
	}
	return nil
}

// mapChunks reserves a range of addresses and maps the chunks there, one after the other. On an error it undoes what it did.
func mapChunks(dev cuda.Device, chunks []cuda.Handle) (cuda.Ptr, error) {
	size := int64(len(chunks)) * chunkSize
	base, err := dev.AddressReserve(size)
	if err != nil {
		return 0, fmt.Errorf("reserve addresses: %w", err)
	}
	mapped := int64(0)
	for _, h := range chunks {
		if err := dev.Map(base+cuda.Ptr(mapped), h); err != nil {
			return 0, errors.Join(fmt.Errorf("map a chunk: %w", err), unmapSome(dev, base, mapped, size))
		}
		mapped += chunkSize
	}
	if err := dev.SetAccess(base, size); err != nil {
		return 0, errors.Join(fmt.Errorf("set access to chunks: %w", err), unmapSome(dev, base, mapped, size))
	}
	return base, nil
}

// unmapChunks undoes mapChunks. The chunks themselves stay.
func unmapChunks(dev cuda.Device, base cuda.Ptr, size int64) error {
	return unmapSome(dev, base, size, size)
}

// unmapSome unmaps the first mapped bytes of a range of size bytes and frees the range.
func unmapSome(dev cuda.Device, base cuda.Ptr, mapped, size int64) error {
	if mapped > 0 {
		if err := dev.Unmap(base, mapped); err != nil {
			return fmt.Errorf("unmap chunks: %w", err)
		}
	}
	if err := dev.AddressFree(base, size); err != nil {
		return fmt.Errorf("free addresses: %w", err)
	}
	return nil
}
