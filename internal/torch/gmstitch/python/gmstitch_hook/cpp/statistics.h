// The account of libgm.so as PyTorch's statistics.
#pragma once

#include "library.h"
#include "torch.h"

namespace gm {

using caching::DeviceStats;

template <class Stat> void set(Stat &to, const Counter &from)
{
	to.current = from.current;
	to.peak = from.peak;
	to.allocated = from.allocated;
	to.freed = from.freed;
}

template <class Stat> void add(Stat &to, const Stat &from)
{
	to.current += from.current;
	to.peak += from.peak;
	to.allocated += from.allocated;
	to.freed += from.freed;
}

// statistics_of converts an account. What libgm.so does not count is 0, and no block is too large to be cut.
inline DeviceStats statistics_of(const Stats &account)
{
	DeviceStats s;
	for (int kind = 0; kind < KINDS; kind++) {
		set(s.allocation[kind], account.allocation[kind]);
		set(s.active[kind], account.allocation[kind]);
		set(s.segment[kind], account.segment[kind]);
		set(s.allocated_bytes[kind], account.allocated_bytes[kind]);
		set(s.active_bytes[kind], account.active_bytes[kind]);
		set(s.requested_bytes[kind], account.requested_bytes[kind]);
		set(s.reserved_bytes[kind], account.reserved_bytes[kind]);
	}
	s.num_alloc_retries = account.retries;
	s.num_ooms = account.ooms;
	s.num_device_alloc = account.segment[ALL].allocated;
	s.num_device_free = account.segment[ALL].freed;
	s.max_split_size = -1;
	return s;
}

// add_other adds the account of another allocator, that of a pool or PyTorch's own.
inline void add_other(DeviceStats &to, const DeviceStats &from)
{
	for (int kind = 0; kind < KINDS; kind++) {
		add(to.allocation[kind], from.allocation[kind]);
		add(to.active[kind], from.active[kind]);
		add(to.segment[kind], from.segment[kind]);
		add(to.allocated_bytes[kind], from.allocated_bytes[kind]);
		add(to.active_bytes[kind], from.active_bytes[kind]);
		add(to.requested_bytes[kind], from.requested_bytes[kind]);
		add(to.reserved_bytes[kind], from.reserved_bytes[kind]);
	}
}

} // namespace gm
