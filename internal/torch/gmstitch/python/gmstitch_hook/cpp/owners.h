// Whose memory an address is: a free names nothing but the address.
#pragma once

#include <cstddef>
#include <cstdint>

#include <sys/mman.h>

namespace gm {

// Owners is a byte for each 2 MiB of addresses. Those of addresses that were never used take no memory.
class Owners {
public:
	static constexpr uint8_t NONE = 0, BORROWED = 0x80, MIXED = 0xff; // a device is its number and 1; BORROWED is added to it

	Owners()
	{
		void *p = mmap(nullptr, SLOTS, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		table_ = p == MAP_FAILED ? nullptr : static_cast<uint8_t *>(p);
	}

	bool ok() const { return table_; }

	// set notes the owner of memory that was allocated. Where 2 MiB had another owner before, it may still have.
	void set(const void *p, uint8_t owner)
	{
		uint8_t *slot = table_ + index(p), before = __atomic_load_n(slot, __ATOMIC_RELAXED);
		while (before != owner && before != MIXED) {
			uint8_t now = before == NONE ? owner : MIXED;
			if (__atomic_compare_exchange_n(slot, &before, now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
				return;
		}
	}

	uint8_t of(const void *p) const { return __atomic_load_n(table_ + index(p), __ATOMIC_RELAXED); }

private:
	static constexpr int SHIFT = 21, BITS = 49;
	static constexpr size_t SLOTS = size_t{1} << (BITS - SHIFT);
	uint8_t *table_;

	static size_t index(const void *p) { return reinterpret_cast<uintptr_t>(p) >> SHIFT & (SLOTS - 1); }
};

} // namespace gm
