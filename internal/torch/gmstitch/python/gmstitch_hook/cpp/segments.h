// What a snapshot shows of memory: segments, which are ranges of addresses that have memory, and the blocks in them.
#pragma once

#include "history.h"
#include "library.h"

#include <vector>

namespace gm {

// blocks_of returns the blocks of a device by address, or none if it was not used.
inline std::vector<Block> blocks_of(const Library &library, DeviceIndex device)
{
	std::vector<Block> blocks(256);
	for (;;) {
		int64_t n = library.blocks(device, blocks.data(), blocks.size());
		if (n < 0)
			return {};
		bool all = static_cast<size_t>(n) <= blocks.size();
		blocks.resize(static_cast<size_t>(all ? n : n + n / 4));
		if (all)
			return blocks;
	}
}

inline void add_gap(caching::SegmentInfo &segment, size_t size)
{
	caching::BlockInfo gap;
	gap.size = size;
	segment.total_size += size;
	segment.blocks.push_back(gap);
}

inline void add_block(caching::SegmentInfo &segment, const Block &b, Context stack)
{
	if (b.address > segment.address + segment.total_size)
		add_gap(segment, b.address - segment.address - segment.total_size);
	auto size = static_cast<size_t>(b.size);
	caching::BlockInfo info;
	info.size = size;
	info.requested_size = static_cast<size_t>(b.requested);
	info.allocated = b.state == USED;
	info.active = b.state != FREE;
	info.context_when_allocated = std::move(stack);
	segment.total_size += size;
	segment.allocated_size += info.allocated ? size : 0;
	segment.active_size += info.active ? size : 0;
	segment.requested_size += info.active ? info.requested_size : 0;
	segment.blocks.push_back(std::move(info));
}

// add_segments appends the segments of a device's blocks, of one pool unless that is NO_POOL. It returns the active bytes.
inline size_t add_segments(std::vector<caching::SegmentInfo> &segments, const std::vector<Block> &blocks, DeviceIndex device, PoolID only,
	History &history)
{
	size_t active = 0;
	bool fresh = true;
	uint64_t last = 0;
	for (const Block &b : blocks) {
		PoolID pool{b.id0, b.id1};
		if (only != NO_POOL && pool != only)
			continue;
		if (fresh || b.segment != last) {
			caching::SegmentInfo s;
			s.device = device;
			s.address = b.segment;
			s.stream = reinterpret_cast<cudaStream_t>(b.stream);
			s.is_large = !b.small;
			s.owner_private_pool_id = pool;
			segments.push_back(std::move(s));
			last = b.segment;
			fresh = false;
		}
		auto *p = reinterpret_cast<void *>(b.address);
		add_block(segments.back(), b, b.state == USED ? history.stack_of(p) : nullptr);
		active += b.state != FREE ? static_cast<size_t>(b.size) : 0;
	}
	return active;
}

} // namespace gm
