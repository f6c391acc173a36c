// Uses the allocator that gm_torch_install puts in as PyTorch does, and checks what comes of it. There are two devices of 1 GiB.
#include "library.h"
#include "use.h"

#include <algorithm>
#include <cstdio>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

extern "C" const char *gm_torch_install(const char *libgm);

// The class declares libgm.so by itself, as gm.h is not at hand where it is compiled.
static_assert(sizeof(gm::Stats) == sizeof(gm_stats) && sizeof(gm::Block) == sizeof(gm_block) && sizeof(gm::Live) == sizeof(gm_live));
static_assert(offsetof(gm::Stats, segment) == offsetof(gm_stats, segment) && offsetof(gm::Stats, ooms) == offsetof(gm_stats, ooms));
static_assert(offsetof(gm::Block, id1) == offsetof(gm_block, id1) && offsetof(gm::Block, small) == offsetof(gm_block, small));
static_assert(int{gm::USED} == GM_USED && int{gm::PENDING} == GM_PENDING && int{gm::LARGE} == GM_LARGE && int{gm::KINDS} == GM_POOL_KINDS);
#define SAME(name) static_assert(std::is_same_v<decltype(gm::Library::name), decltype(&gm_##name)>)
SAME(try_malloc);
SAME(free);
SAME(record_stream);
SAME(init);
SAME(reset);
SAME(memory_fraction);
SAME(base_alloc);
SAME(begin_pool);
SAME(end_pool);
SAME(release_pool);
SAME(retain_pool);
SAME(pool_uses);
SAME(reset_pool);
SAME(pool_use_on_oom);
SAME(last_error);
SAME(device_of);

struct Stack : c10::GatheredContext {
	int number;
	explicit Stack(int n) : number(n) {}
};
static int stacks;
static std::shared_ptr<c10::GatheredContext> gather() { return std::make_shared<Stack>(++stacks); }

static void record(bool on, size_t entries = SIZE_MAX, RecordContext when = RecordContext::ALL)
{
#if TORCH >= 211
	a->recordHistory(on, gather, entries, when, true, {"segment_map", "segment_unmap"});
#else
	a->recordHistory(on, gather, entries, when);
#endif
}

static std::vector<TraceEntry> entries(TraceEntry::Action except = TraceEntry::SNAPSHOT)
{
	std::vector<TraceEntry> found;
	auto snapshot = a->snapshot();
	for (auto &e : snapshot.device_traces.at(0))
		if (e.action_ != except && e.action_ != TraceEntry::SEGMENT_MAP && e.action_ != TraceEntry::SEGMENT_UNMAP)
			found.push_back(e);
	return found;
}

static void installed(const char *libgm)
{
	auto *stock = allocator.load();
	CHECK(std::string(gm_torch_install("/nowhere/libgm.so")).find("/nowhere/libgm.so") != std::string::npos && allocator.load() == stock);
	CHECK(!gm_torch_install(libgm));
	a = allocator.load();
	CHECK(a != stock && c10::GetAllocator(c10::DeviceType::CUDA) == a && a->name() == "native" && !a->initialized() && a->isEnabled());
	CHECK(failure([] { a->getDeviceStats(0); }).find("did you call init?") != std::string::npos);
	a->init(2);
	CHECK(a->initialized());
}

static void requests()
{
	CHECK(!a->allocate(0).get() && !a->raw_alloc(0));
	a->raw_delete(nullptr);
	int64_t before = allocated();
	{
		auto p = a->allocate(3000000);
		CHECK(p.get() && p.get_deleter() == a->raw_deleter() && p.device().index == 0 && allocated() > before);
		OK(cudaMemset(p.get(), 7, 3000000));
		auto q = a->allocate(3000000);
		a->copy_data(q.get(), p.get(), 3000000);
		unsigned char last = 0;
		OK(cudaMemcpy(&last, static_cast<char *>(q.get()) + 2999999, 1, cudaMemcpyDeviceToHost));
		CHECK(last == 7);
		size_t size = 0;
		CHECK(a->getBaseAllocation(static_cast<char *>(p.get()) + 5000, &size) == p.get() && size >= 3000000);
		void *raw = a->raw_alloc_with_stream(100, nullptr);
		CHECK(raw);
		a->raw_delete(raw);
	}
	CHECK(allocated() == before);
	int local;
	CHECK(failure([&] { a->raw_delete(&local); }).find("invalid device pointer") != std::string::npos);
	CHECK(failure([&] { a->getBaseAllocation(&local, nullptr); }).find("invalid device pointer") != std::string::npos);
	CHECK(failure([] { a->allocate(size_t{1} << 61); }) == "OOM: CUDA out of memory. Tried to allocate more than 1EB memory.");
	size_t largest = 0;
	a->cacheInfo(0, &largest);
	CHECK(largest > 512 * MIB && largest <= GIB);
	a->resetPeakStats(0);
	a->resetAccumulatedStats(0);
	CHECK(a->getDeviceStats(0).allocation[0].allocated == 0);
}

// Blocks of both devices within 2 MiB of addresses are freed where they belong.
static void devices()
{
	std::vector<std::pair<void *, int>> live;
	for (int i = 0; i < 400; i++) {
		OK(cudaSetDevice(i % 2));
		live.push_back({a->raw_alloc(1000 + static_cast<size_t>(i) * 3000), i % 2});
	}
	OK(cudaSetDevice(0));
	CHECK(allocated(0) > 0 && allocated(1) > 0);
	void *from = live[0].first, *to = live[1].first;
	OK(a->memcpyAsync(to, 1, from, 0, 1000, nullptr, false));
	CHECK(told.peer_copies == 1);
	OK(a->memcpyAsync(to, 1, from, 0, 1000, nullptr, true));
	CHECK(told.peer_copies == 1);
	a->enablePeerAccess(0, 1);
	for (auto &[p, device] : live)
		a->raw_delete(p);
	CHECK(allocated(0) == 0 && allocated(1) == 0);
}

static void streams()
{
	cudaStream_t other;
	OK(cudaStreamCreate(&other));
	void *first;
	{
		auto p = a->allocate(5 * MIB);
		first = p.get();
		a->recordStream(p, CUDAStream(other));
		OK(cudaMemsetAsync(first, 1, 5 * MIB, other));
	}
	auto q = a->allocate(5 * MIB);
	OK(cudaMemsetAsync(q.get(), 2, 5 * MIB, nullptr));
	OK(cudaStreamSynchronize(other));
	OK(cudaStreamSynchronize(nullptr));
	unsigned char value = 0;
	OK(cudaMemcpy(&value, q.get(), 1, cudaMemcpyDeviceToHost));
	CHECK(value == 2);
	c10::DataPtr foreign(&value, &value, [](void *) {}, {c10::DeviceType::CUDA, 0});
	a->recordStream(foreign, CUDAStream(other));
	OK(cudaStreamDestroy(other));
}

static void history()
{
	auto old = a->allocate(4000000);
	CHECK(!a->isHistoryEnabled() && a->snapshot().device_traces.at(0).empty());
	record(true);
	CHECK(a->isHistoryEnabled());
	auto p = std::make_unique<c10::DataPtr>(a->allocate(1234));
	void *address = p->get();
	auto q = a->allocate(3 * MIB);
	p.reset();
	a->raw_delete(old.release_context());
	a->recordAnnotation({{"name", "part"}, {"stage", "START"}});
	auto found = entries();
	CHECK(found.size() == 6);
	auto is = [&](size_t i, TraceEntry::Action action, void *at, size_t size, int stack) {
		auto *s = dynamic_cast<Stack *>(found[i].context_.get());
		CHECK(found[i].action_ == action && found[i].addr_ == reinterpret_cast<size_t>(at) && found[i].size_ == size);
		CHECK(s && s->number == stack);
		CHECK(i == 0 || found[i].time_.t_ > found[i - 1].time_.t_);
	};
	is(0, TraceEntry::ALLOC, address, 1234, 1);
	is(1, TraceEntry::ALLOC, q.get(), 3 * MIB, 2);
	is(2, TraceEntry::FREE_REQUESTED, address, 1234, 3);
	is(3, TraceEntry::FREE_COMPLETED, address, 1234, 3);
	is(4, TraceEntry::FREE_REQUESTED, old.get(), 4000000, 4);
	auto snapshot = a->snapshot();
	CHECK(snapshot.config_metadata.last_allocator_settings == "settings");
	CHECK(snapshot.external_annotations.size() == 1 && snapshot.external_annotations[0].metadata_["name"] == "part");
	CHECK(snapshot.device_traces[0].back().action_ == TraceEntry::SNAPSHOT && snapshot.device_traces.size() == 2);
	int seen = 0;
	for (auto &s : snapshot.segments) {
		size_t sum = 0, used = 0, at = s.address;
		for (auto &b : s.blocks) {
			sum += b.size;
			used += b.allocated ? b.size : 0;
			if (b.allocated && at == reinterpret_cast<size_t>(q.get())) {
				seen++;
				CHECK(dynamic_cast<Stack *>(b.context_when_allocated.get())->number == 2 && b.requested_size == 3 * MIB);
			}
			at += b.size;
		}
		CHECK(sum == s.total_size && used == s.allocated_size);
	}
	CHECK(seen == 1);
	record(false);
	CHECK(a->snapshot().device_traces[0].empty());
}

static void ring()
{
	record(true, 5, RecordContext::STATE);
	void *last = nullptr;
	for (size_t i = 0; i < 100; i++) {
		auto p = a->allocate(1000 + i);
		last = p.get();
	}
	auto found = a->snapshot().device_traces.at(0);
	CHECK(found.size() == 5 && found[4].action_ == TraceEntry::FREE_COMPLETED && found[4].addr_ == reinterpret_cast<size_t>(last));
	CHECK(found[4].size_ == 1099 && !found[4].context_); // stacks are kept for what is live
	record(false);
}

#if TORCH >= 211
static void names()
{
	std::string name = "graph 1";
	a->pushCompileContext(name);
	a->setUserMetadata("phase");
	a->recordHistory(true, gather, 100, RecordContext::ALL, true, {"free_requested", "segment_map", "segment_unmap"});
	a->allocate(1000);
	a->popCompileContext();
	a->allocate(1000);
	auto found = a->snapshot({0, 0}, true).device_traces.at(0);
	CHECK(found.size() == 4 && found[0].compile_context_ == "graph 1" && found[2].compile_context_ == "N/A");
	CHECK(found[3].action_ == TraceEntry::FREE_COMPLETED && found[0].user_metadata_ == "phase" && a->getUserMetadata() == "phase");
	CHECK(a->snapshot({0, 0}, false).device_traces.empty());
	record(false);
}
#endif

static void tracker()
{
	static std::vector<TraceEntry::Action> seen;
	a->attachAllocatorTraceTracker([](const TraceEntry &e) { seen.push_back(e.action_); });
	a->allocate(300 * MIB);
	a->emptyCache();
	auto count = [](TraceEntry::Action action) { return std::count(seen.begin(), seen.end(), action); };
	CHECK(count(TraceEntry::ALLOC) == 1 && count(TraceEntry::FREE_REQUESTED) == 1 && count(TraceEntry::FREE_COMPLETED) == 1);
	CHECK(a->snapshot().device_traces.at(0).empty());
}

// What a tracker throws comes out of the request, which takes nothing then.
static void throwing_tracker()
{
	static bool throws = true;
	a->attachAllocatorTraceTracker([](const TraceEntry &e) {
		if (throws && e.action_ == TraceEntry::SEGMENT_MAP)
			throw c10::Error("tracker");
	});
	int64_t before = allocated();
	CHECK(failure([] { a->allocate(300 * MIB); }) == "tracker" && allocated() == before);
	throws = false;
	a->emptyCache();
}

static void pool()
{
	const c10::MempoolId_t id{0, 5};
	auto in_pool = [&] {
		size_t n = 0;
		auto snapshot = a->snapshot();
		for (auto &s : snapshot.segments)
			if (s.owner_private_pool_id == id)
				for (auto &b : s.blocks)
					n += b.allocated;
		return n;
	};
#if TORCH >= 211
	a->createOrIncrefPool(0, id, nullptr);
#else
	a->ensureExistsAndIncrefPool(0, id);
#endif
	a->beginAllocateToPool(0, id, [](cudaStream_t) { return true; });
	CHECK(a->getPoolUseCount(0, id) == 2);
	auto p = std::make_unique<c10::DataPtr>(a->allocate(3 * MIB));
	auto q = std::make_unique<c10::DataPtr>(a->allocate(1000));
	a->endAllocateToPool(0, id);
	a->releasePool(0, id);
	auto other = a->allocate(3 * MIB);
	CHECK(in_pool() == 2 && a->getPoolUseCount(0, id) == 1);
	CHECK(a->checkPoolLiveAllocations(0, id, {p->get(), q->get()}) && !a->checkPoolLiveAllocations(0, id, {p->get()}));

	auto state = a->getCheckpointState(0, id);
	std::unordered_set<void *> then{p->get(), q->get()};
	q.reset();
	a->beginAllocateToPool(0, id, [](cudaStream_t) { return true; });
	auto later = a->allocate(9 * MIB);
	a->endAllocateToPool(0, id);
	a->releasePool(0, id);
	auto delta = a->setCheckpointPoolState(0, state);
	CHECK(delta.ptrs_freed.size() == 2 && delta.dataptrs_allocd.size() == 2 && a->checkPoolLiveAllocations(0, id, then));
	later.release_context(); // was freed by the checkpoint
	p->release_context();    // belongs to the checkpoint
	delta.dataptrs_allocd.clear();
	CHECK(a->checkPoolLiveAllocations(0, id, {}));
	CHECK(failure([] { a->getCheckpointState(0, {9, 9}); }) == "Could not find pool of id");

	a->releasePool(0, id);
	CHECK(a->getPoolUseCount(0, id) == 0);
#if TORCH >= 211
	a->emptyCache(id);
#else
	a->emptyCache();
#endif
	auto snapshot = a->snapshot();
	for (auto &s : snapshot.segments)
		CHECK(s.owner_private_pool_id != id);
}

static void out_of_memory()
{
	static std::vector<std::array<size_t, 4>> seen;
	a->attachOutOfMemoryObserver([](int64_t device, size_t size, size_t total, size_t free) {
		seen.push_back({static_cast<size_t>(device), size, total, free});
		a->allocate(1000); // no lock is held
	});
	record(true);
	std::string text = failure([] { a->allocate(2 * GIB); });
	CHECK(text.find("OOM: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 1024.00 MiB") == 0);
	CHECK(seen.size() == 1 && seen[0][1] == 2 * GIB && seen[0][2] == GIB && seen[0][3] <= GIB && told.ooms == 1);
	auto found = entries();
	CHECK(found.size() == 4 && found[0].action_ == TraceEntry::OOM && found[0].size_ == 2 * GIB && found[0].addr_ == seen[0][3]);
	record(false);

	a->setMemoryFraction(0.25, 0);
	CHECK(a->getMemoryFraction(0) == 0.25 && a->getMemoryFraction(1) == 1);
	CHECK(failure([] { a->allocate(300 * MIB); }).find("OOM: ") == 0 && seen[1][2] == GIB / 4);
	a->setMemoryFraction(1, 0);
	CHECK(failure([] { a->setMemoryFraction(1.5, 0); }).find("invalid fraction") == 0);

	static void *held;
	held = a->raw_alloc(300 * MIB);
	struct Drop : c10::FreeMemoryCallback {
		bool Execute() override
		{
			a->raw_delete(held);
			return held != nullptr;
		}
	};
	auto &makers = c10::FreeCudaMemoryCallbacksRegistry()->makers;
	makers["drop"] = [] { return std::make_unique<Drop>(); };
	a->raw_delete(a->raw_alloc(400 * MIB)); // after what the callback has freed
	makers.clear();
	a->emptyCache();
}

static void profiler()
{
	told.profiling = told.tracing = true;
	size_t before = static_cast<size_t>(allocated());
	{
		auto p = a->allocate(4 * MIB);
		CHECK(told.traced == 1);
	}
	told.profiling = told.tracing = false;
	CHECK(told.traced == 0 && told.profiled.size() == 2);
	CHECK(told.profiled[0].first == static_cast<int64_t>(4 * MIB) && told.profiled[0].second == before + 4 * MIB);
	CHECK(told.profiled[1].first == -static_cast<int64_t>(4 * MIB) && told.profiled[1].second == before);
}

static void disabled()
{
	int64_t before = allocated();
	a->enable(false);
	CHECK(!a->isEnabled());
	{
		auto p = a->allocate(1000);
		CHECK(p.get() && allocated() == before);
	}
	void *p = a->raw_alloc(1000);
	a->raw_delete(p);
	a->enable(true);
}

static void sharing(Plain *stock)
{
	std::vector<void *> parts;
	for (int i = 0; i < 50; i++)
		parts.push_back(a->raw_alloc(8 * MIB));
	for (void *p : parts)
		a->raw_delete(p);
	auto whole = a->allocate(50 * 8 * MIB); // of many pieces
	CHECK(a->shareIpcHandle(whole.get()).handle.compare(0, 3, "gm:") == 0);
	CHECK(a->getIpcDevPtr("a handle of PyTorch's own"));
	CHECK(stock->opened.size() == 1 && stock->devices == 2);
}

// The memory of many threads, with and without a history, belongs to one at a time.
static void threads()
{
	for (bool on : {false, true}) {
		record(on, 100);
		std::vector<std::thread> all;
		for (int t = 0; t < 4; t++)
			all.emplace_back([t] {
				std::vector<c10::DataPtr> live;
				for (size_t i = 0; i < 400; i++) {
					auto p = a->allocate(1 + (i * 7919) % 30000);
					*static_cast<volatile int *>(p.get()) = t;
					live.push_back(std::move(p));
					if (i % 3 == 0)
						live.erase(live.begin() + static_cast<long>(i * 31 % live.size()));
				}
				for (auto &p : live)
					CHECK(*static_cast<volatile int *>(p.get()) == t);
			});
		for (auto &t : all)
			t.join();
		record(false);
	}
	CHECK(allocated() == 0);
}

// A forked child frees nothing and gets nothing.
static void forked()
{
	auto p = a->allocate(1000);
	record(true);
	pid_t child = fork();
	if (!child) {
		p = a->allocate(0);
		bool refused = failure([] { a->raw_alloc(1000); }).find("OOM: CUDA out of memory. This process was forked") == 0;
		_exit(refused ? 0 : 1);
	}
	int status = 0;
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	record(false);
}

// What PyTorch's own allocator handed out before stays with it.
static int late(const char *libgm, Plain *stock)
{
	stock->init(1);
	void *early = stock->raw_alloc(1000);
	CHECK(!gm_torch_install(libgm) && !gm_torch_install(libgm));
	a = allocator.load();
	CHECK(a != stock && a->initialized());
	auto p = a->allocate(1000);
	CHECK(a->getDeviceStats(1).allocation[0].current == 1 && a->getDeviceStats(0).allocation[0].current == 2);
	CHECK(a->getBaseAllocation(early, nullptr) == early && a->shareIpcHandle(early).handle == "stock");
	a->raw_delete(early);
	CHECK(stock->live == 0 && a->getDeviceStats(0).allocation[0].current == 1);
	return 0;
}

int main(int argc, char **argv)
{
	start(0);
	auto *stock = static_cast<Plain *>(allocator.load());
	if (argc > 2)
		return late(argv[1], stock);
	installed(argv[1]);
	requests();
	devices();
	streams();
	history();
	ring();
#if TORCH >= 211
	names();
#endif
	pool();
	out_of_memory();
	profiler();
	disabled();
	sharing(stock);
	threads();
	tracker();
	throwing_tracker();
	borrowed_pools();
	forked();
}
