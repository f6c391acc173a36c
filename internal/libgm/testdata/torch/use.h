// What the test programs of the class share: its allocator, and how to ask it.
#pragma once

extern "C" {
#include "check.h"
}
#include "told.h"

using namespace c10::cuda::CUDACachingAllocator;
using c10::cuda::CUDAStream;

inline CUDAAllocator *a;

template <class F> std::string failure(F f)
{
	try {
		f();
	} catch (const c10::OutOfMemoryError &e) {
		return std::string("OOM: ") + e.what();
	} catch (const c10::Error &e) {
		return e.what();
	}
	return "";
}

inline int64_t allocated(int device = 0) { return a->getDeviceStats(device).allocated_bytes[0].current; }

// borrowed_pools uses pools whose memory comes from another allocator (borrowed.cpp).
void borrowed_pools();
