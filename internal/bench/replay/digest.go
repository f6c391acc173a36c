package replay

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"slices"
)

// Digest is a SHA-256 of what a replay depends on, apart from times: programs with equal digests need the same memory in every allocator.
type Digest [sha256.Size]byte

// Digest returns the digest of the program.
func (p *Program) Digest() Digest {
	h := sha256.New()
	h.Write([]byte(p.AllocConf))
	write(h, []int64{p.Align, int64(len(p.Kinds)), int64(len(p.Sizes)), int64(len(p.Initial))})
	for part := range slices.Chunk(p.Kinds, chunk) {
		bytes := make([]byte, len(part))
		for i, k := range part {
			bytes[i] = byte(k)
		}
		h.Write(bytes)
	}
	write(h, p.Tensors)
	write(h, p.Sizes)
	write(h, ordinals(p.Streams))
	write(h, ordinals(p.Pools))
	write(h, p.Arenas)
	for _, at := range p.Placements {
		write(h, []int64{at.Size, int64(at.Arena), at.Offset})
	}
	for _, s := range p.Initial {
		write(h, []int64{int64(s.Addr), s.Size, int64(s.Stream), int64(s.Pool), int64(len(s.Live))})
		for _, b := range s.Live {
			write(h, []int64{int64(b.Addr), b.Size, b.Block})
		}
	}
	write(h, p.InitialTensors)
	return Digest(h.Sum(nil))
}

// ordinals numbers values by their first use: the handles of streams differ from process to process.
func ordinals[T comparable](values []T) []int32 {
	seen, out := map[T]int32{}, make([]int32, len(values))
	for i, v := range values {
		n, ok := seen[v]
		if !ok {
			n = int32(len(seen))
			seen[v] = n
		}
		out[i] = n
	}
	return out
}

// chunk is how many values are hashed at a time.
const chunk = 1 << 12

func write[T int32 | int64](h hash.Hash, values []T) {
	for part := range slices.Chunk(values, chunk) {
		if err := binary.Write(h, binary.LittleEndian, part); err != nil {
			panic("BUG: digest: " + err.Error())
		}
	}
}
