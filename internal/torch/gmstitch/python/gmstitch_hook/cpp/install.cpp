// Compiled against the headers of the PyTorch that a process has imported, and loaded beside it.
#include "allocator.h"

// gm_torch_install makes the allocator of libgm.so, a file, PyTorch's. It returns nothing, or why that cannot be. What PyTorch's own
// allocator has handed out before, if C++ has used it early, stays with that.
extern "C" const char *gm_torch_install(const char *libgm)
{
	static std::string why;
	try {
		if (gm::Allocator::installed())
			return nullptr; // in the parent of this process
		auto *stock = gm::caching::allocator.load();
		gm::Library library;
		why = library.open(libgm);
		if (!why.empty())
			return why.c_str();
		auto *allocator = new gm::Allocator(library, *stock);
		if (!allocator->ok())
			return "there are no addresses left for a table";
		if (stock->initialized())
			allocator->init(c10::cuda::device_count());
		gm::caching::allocator.store(allocator);
		c10::SetAllocator(c10::DeviceType::CUDA, allocator);
		return nullptr;
	} catch (const std::exception &e) {
		why = e.what();
		return why.c_str();
	}
}
