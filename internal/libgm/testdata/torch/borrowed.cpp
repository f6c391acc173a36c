// Pools with memory of another allocator: torch.cuda.MemPool(allocator).
#include "use.h"

// A pool whose memory comes from another allocator.
static void borrowed()
{
	const c10::MempoolId_t id{0, 77};
	auto source = std::make_shared<Plain>();
	int64_t before = allocated();
	auto begin = [&] {
#if TORCH < 211
		told.pool_allocator = source.get();
#endif
		a->beginAllocateToPool(0, id, [](cudaStream_t) { return true; });
	};
	auto end = [&] {
		a->endAllocateToPool(0, id);
		a->releasePool(0, id);
		told.pool_allocator = nullptr;
	};
#if TORCH >= 211
	a->createOrIncrefPool(0, id, source);
#else
	a->ensureExistsAndIncrefPool(0, id);
#endif
	begin();
	CHECK(a->getPoolUseCount(0, id) == 2);
	void *p = a->raw_alloc(3 * MIB), *q = a->raw_alloc(1000), *r = a->raw_alloc(1000);
	CHECK(source->live == 1 && p && q && r && allocated() - before == static_cast<int64_t>(3 * MIB + 2 * 1024));
	size_t size = 0;
	CHECK(a->getBaseAllocation(q, &size) == p && size == 20 * MIB);
	a->raw_delete(q);
	CHECK(a->raw_alloc(900) == q);
	cudaStream_t other;
	OK(cudaStreamCreate(&other));
	c10::DataPtr lent(r, r, a->raw_deleter(), {c10::DeviceType::CUDA, 0});
	a->recordStream(lent, CUDAStream(other));
	a->raw_delete(lent.release_context());
	OK(cudaStreamSynchronize(other));
	CHECK(a->raw_alloc(1000) == r);
	end();
	size_t segments = 0;
	auto snapshot = a->snapshot();
	for (auto &s : snapshot.segments)
		if (s.owner_private_pool_id == id) {
			segments++;
			CHECK(s.total_size == 20 * MIB && s.blocks.size() == 4);
		}
	CHECK(segments == 1 && a->getPoolUseCount(0, id) == 1);
#if TORCH >= 211
	for (auto &s : snapshot.segments)
		CHECK(s.registration_counter >= 0);
#endif
	for (void *one : {p, q, r})
		a->raw_delete(one);
	a->emptyCache();
	CHECK(source->live == 1); // the pool is still used
	a->releasePool(0, id);
	a->emptyCache();
	CHECK(source->live == 0 && allocated() == before);
	OK(cudaStreamDestroy(other));
}

// begin_pool has requests come from a pool whose memory comes from source, and end_pool ends that and all uses of the pool.
static void begin_pool(const c10::MempoolId_t &id, const std::shared_ptr<Plain> &source)
{
#if TORCH < 211
	told.pool_allocator = source.get();
#else
	a->createOrIncrefPool(0, id, source);
#endif
	a->beginAllocateToPool(0, id, [](cudaStream_t) { return true; });
}

static void end_pool(const c10::MempoolId_t &id)
{
	a->endAllocateToPool(0, id);
	told.pool_allocator = nullptr;
	while (a->getPoolUseCount(0, id) > 0)
		a->releasePool(0, id);
}

// A pool with other memory serves requests while a graph is captured, when no event may be queried or recorded.
static void borrowed_in_capture()
{
	const c10::MempoolId_t id{0, 77};
	auto source = std::make_shared<Plain>();
	cudaStream_t other, captured;
	OK(cudaStreamCreate(&other));
	OK(cuStreamCreate(&captured, 1));
	auto begin = [&] { begin_pool(id, source); };
	auto end = [&] { end_pool(id); };
	auto lend = [&] {
		void *p = a->raw_alloc(1000);
		c10::DataPtr lent(p, p, a->raw_deleter(), {c10::DeviceType::CUDA, 0});
		a->recordStream(lent, CUDAStream(other));
		return lent;
	};
	begin();
	lend(); // and is freed
	auto during = lend();
	CUgraph graph;
	OK(cuStreamBeginCapture_v2(captured, CU_STREAM_CAPTURE_MODE_GLOBAL));
	a->raw_delete(during.release_context());
	void *large = a->raw_alloc_with_stream(30 * MIB, captured);
	OK(cuStreamEndCapture(captured, &graph));
	a->raw_delete(large);
	end();
	CHECK(source->live == 2);
	a->emptyCache();
	CHECK(source->live == 0);
	OK(cudaStreamDestroy(other));
	OK(cudaStreamDestroy(captured));
}

// A full device gets back what a pool with other memory has kept, once nobody uses the pool.
static void borrowed_when_full()
{
	const c10::MempoolId_t id{0, 77};
	auto source = std::make_shared<Plain>();
	std::vector<void *> all;
	begin_pool(id, source);
	void *p = a->raw_alloc(200 * MIB);
	end_pool(id);
	a->raw_delete(p);
	CHECK(source->live == 1);
	CHECK(failure([&] {
		for (;;)
			all.push_back(a->raw_alloc(40 * MIB));
	}).find("OOM: ") == 0);
	CHECK(source->live == 0);
	for (void *one : all)
		a->raw_delete(one);
	a->emptyCache();
}

// A tracker that throws when the pool gets a segment costs the request, and no memory.
static void borrowed_with_tracker()
{
	static bool throws = true;
	const c10::MempoolId_t id{0, 77};
	auto source = std::make_shared<Plain>();
	a->attachAllocatorTraceTracker([](const TraceEntry &e) {
		if (throws && e.action_ == TraceEntry::SEGMENT_ALLOC)
			throw c10::Error("tracker");
	});
	begin_pool(id, source);
	CHECK(failure([] { a->allocate(1000); }) == "tracker" && source->live == 1);
	throws = false;
	end_pool(id);
	a->emptyCache();
	CHECK(source->live == 0);
}

void borrowed_pools()
{
	borrowed();
	borrowed_in_capture();
	borrowed_when_full();
	borrowed_with_tracker();
}
