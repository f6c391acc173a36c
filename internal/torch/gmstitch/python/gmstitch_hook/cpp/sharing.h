// Memory that is sent to other processes: torch.multiprocessing.
#pragma once

#include "library.h"
#include "torch.h"

#include <mutex>
#include <unordered_map>

namespace gm {

class Sharing {
public:
	Sharing(const Library &library, CUDAAllocator &stock) : library_(library), stock_(stock) {}

	caching::ShareableHandle share(void *p) const
	{
		std::string handle(1024, 0);
		size_t n = library_.share(p, &handle[0], handle.size());
		if (n > handle.size()) { // of many pieces
			handle.resize(n);
			n = library_.share(p, &handle[0], n);
		}
		TORCH_CHECK(n > 0, "Memory cannot be shared with other processes: ", library_.error());
		handle.resize(n);
		return {0, PREFIX + handle};
	}

	// open maps what another process shares. A handle of PyTorch's own allocator is for that to open.
	std::shared_ptr<void> open(const std::string &handle, int devices)
	{
		std::lock_guard<std::mutex> lock(mutex_);
		auto found = opened_.find(handle);
		if (found != opened_.end())
			if (auto p = found->second.lock())
				return p;
		if (handle.compare(0, PREFIX.size(), PREFIX) != 0) {
			stock_.init(devices);
			return stock_.getIpcDevPtr(handle);
		}
		const char *text = handle.c_str() + PREFIX.size();
		void *p = library_.open_shared(text, handle.size() - PREFIX.size(), current_device());
		TORCH_CHECK(p, "Memory of another process cannot be mapped: ", library_.error());
		auto shared = std::shared_ptr<void>(p, [this, handle](void *q) { close(handle, q); });
		opened_[handle] = shared;
		return shared;
	}

private:
	const std::string PREFIX = "gm:";
	const Library &library_;
	CUDAAllocator &stock_;
	std::mutex mutex_;
	std::unordered_map<std::string, std::weak_ptr<void>> opened_;

	void close(const std::string &handle, void *p)
	{
		std::lock_guard<std::mutex> lock(mutex_);
		auto found = opened_.find(handle);
		if (found != opened_.end() && found->second.expired())
			opened_.erase(found);
		library_.close_shared(p);
	}
};

} // namespace gm
