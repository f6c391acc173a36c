// The pools that have an allocator of their own, and which requests go there. The other pools are libgm.so's.
#pragma once

#include "borrowed.h"

#include <functional>
#include <shared_mutex>

namespace gm {

using Filter = std::function<bool(cudaStream_t)>;

class BorrowedPools {
public:
	explicit BorrowedPools(History &history) : history_(history) {}

	// any says whether there was such a pool; it is false nearly always.
	bool any() const { return any_.load(std::memory_order_acquire); }

	void make(DeviceIndex device, PoolID id, std::shared_ptr<CUDAAllocator> source)
	{
		std::lock_guard<std::shared_mutex> lock(mutex_);
		pools_[{device, id}].memory = std::make_shared<Borrowed>(device, id, std::move(source), history_, capturing_);
		any_.store(true);
	}

	// use counts one more user of a pool. It returns whether there is such a pool, as the functions after it do.
	bool use(DeviceIndex device, PoolID id)
	{
		return with(device, id, [](Pool &pool) { pool.users++; });
	}

	// set_filter sends the requests that a filter accepts to a pool, or none for an empty filter.
	bool set_filter(DeviceIndex device, PoolID id, Filter filter)
	{
		return with(device, id, [&](Pool &pool) { pool.filter = std::move(filter); });
	}

	bool release(DeviceIndex device, PoolID id)
	{
		return with(device, id, [](Pool &pool) { pool.users = std::max(pool.users - 1, 0); });
	}

	bool set_last_resort(DeviceIndex device, PoolID id, bool on)
	{
		return with(device, id, [=](Pool &pool) { pool.last_resort = on; });
	}

	bool set_whole(DeviceIndex device, PoolID id)
	{
		return with(device, id, [](Pool &pool) { pool.memory->set_whole(); });
	}

	// users returns how many use a pool, -1 if there is none.
	int users(DeviceIndex device, PoolID id)
	{
		int n = -1;
		with(device, id, [&](Pool &pool) { n = pool.users; });
		return n;
	}

	// for_request returns the pool that a request goes to, if one does.
	std::shared_ptr<Borrowed> for_request(DeviceIndex device, cudaStream_t stream)
	{
		std::shared_lock<std::shared_mutex> lock(mutex_);
		for (auto &[key, pool] : pools_)
			if (key.first == device && pool.filter && pool.filter(stream))
				return pool.memory;
		return nullptr;
	}

	// owner returns the pool that a live request lies in, and describes the request.
	std::shared_ptr<Borrowed> owner(DeviceIndex device, void *p, Block *block)
	{
		for (auto &memory : of(device))
			if (memory->find(p, block))
				return memory;
		return nullptr;
	}

	// last_resort serves a request from the pools that are meant for a device that is full.
	void *last_resort(DeviceIndex device, size_t size, cudaStream_t stream)
	{
		std::vector<std::shared_ptr<Borrowed>> willing;
		{
			std::shared_lock<std::shared_mutex> lock(mutex_);
			for (auto &[key, pool] : pools_)
				if (key.first == device && pool.last_resort)
					willing.push_back(pool.memory);
		}
		for (auto &memory : willing)
			if (void *p = memory->malloc(size, stream, nullptr))
				return p;
		return nullptr;
	}

	// begin and end say that a pool of libgm.so's was begun or ended: in between a CUDA graph may be captured.
	void begin(DeviceIndex device, PoolID id)
	{
		std::lock_guard<std::shared_mutex> lock(mutex_);
		begun_.insert({device, id});
		capturing_.store(true);
	}

	void end(DeviceIndex device, PoolID id)
	{
		std::lock_guard<std::shared_mutex> lock(mutex_);
		auto found = begun_.find({device, id});
		if (found != begun_.end())
			begun_.erase(found);
		capturing_.store(!begun_.empty());
	}

	// empty gives back the free memory of the unused pools, or of one if it is unused. It returns whether there was any.
	bool empty(PoolID id)
	{
		std::map<Key, std::shared_ptr<Borrowed>> unused;
		{
			std::shared_lock<std::shared_mutex> lock(mutex_);
			for (auto &[key, pool] : pools_)
				if ((id == NO_POOL || key.second == id) && pool.users == 0)
					unused[key] = pool.memory;
		}
		bool any = false;
		for (auto &[key, memory] : unused)
			any |= memory->empty();
		std::lock_guard<std::shared_mutex> lock(mutex_);
		for (auto &[key, memory] : unused) {
			auto pool = pools_.find(key);
			if (pool != pools_.end() && pool->second.memory == memory && pool->second.users == 0 && memory->unused())
				pools_.erase(pool);
		}
		return any;
	}

	std::vector<std::shared_ptr<Borrowed>> of(DeviceIndex device)
	{
		std::vector<std::shared_ptr<Borrowed>> all;
		if (!any())
			return all;
		std::shared_lock<std::shared_mutex> lock(mutex_);
		for (auto &[key, pool] : pools_)
			if (key.first == device)
				all.push_back(pool.memory);
		return all;
	}

private:
	using Key = std::pair<DeviceIndex, PoolID>;
	struct Pool {
		int users = 0;
		bool last_resort = false;
		Filter filter; // empty unless the pool is begun
		std::shared_ptr<Borrowed> memory;
	};

	History &history_;
	std::atomic<bool> any_{false};
	std::shared_mutex mutex_;
	std::map<Key, Pool> pools_;
	std::multiset<Key> begun_; // pools of libgm.so's
	std::atomic<bool> capturing_{false};

	template <class F> bool with(DeviceIndex device, PoolID id, F f)
	{
		if (!any())
			return false;
		std::lock_guard<std::shared_mutex> lock(mutex_);
		auto found = pools_.find({device, id});
		if (found == pools_.end())
			return false;
		f(found->second);
		return true;
	}
};

} // namespace gm
