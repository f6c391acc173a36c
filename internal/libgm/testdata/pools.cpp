// Private pools chosen by a std::function, with a capture going on, and their memory afterwards.
extern "C" {
#include "check.h"
}
#include <functional>
#include <memory>
#include <string>

#include <pthread.h>

using Filter = std::function<bool(CUstream)>;

static bool in_segment(const std::string &snapshot, void *p, const char *pool)
{
	size_t block = snapshot.find("{\"address\":" + std::to_string((uintptr_t)p) + ",");
	CHECK(block != std::string::npos);
	size_t id = snapshot.rfind("\"segment_pool_id\":", block);
	return snapshot.compare(id + 18, strlen(pool), pool) == 0;
}

static std::string snapshot()
{
	std::string text(gm_snapshot(nullptr, 0) + 1, '\0');
	text.resize(gm_snapshot(text.data(), text.size()));
	return text;
}

static void captured(size_t size)
{
	CUstream s;
	OK(cuStreamCreate(&s, 1));
	auto token = std::make_shared<int>(0);
	void *cached = gm_malloc((ssize_t)size, 0, s);
	gm_free(cached, 0, 0, s);
	{
		Filter filter = [token, s](CUstream other) { return other == s; };
		gm_begin_pool(0, 1, 2, &filter);
	}
	CHECK(token.use_count() == 2); // the copy lives
	OK(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	void *p = gm_malloc((ssize_t)size, 0, s), *q = gm_malloc((ssize_t)size, 0, s), *other = gm_malloc((ssize_t)size, 0, nullptr);
	CHECK(p && q && other && p != cached && q != cached);
	std::string text = snapshot();
	CHECK(in_segment(text, p, "[1,2]") && in_segment(text, q, "[1,2]") && in_segment(text, other, "[0,0]"));
	gm_record_stream(q, nullptr);
	gm_free(p, 0, 0, s);
	gm_free(q, 0, 0, s); // waits for the end of the capture
	CHECK(gm_malloc((ssize_t)size, 0, s) == p);
	gm_reset(); // nothing to give back now
	CUgraph graph;
	OK(cuStreamEndCapture(s, &graph));
	gm_end_pool(0, 1, 2);
	CHECK(token.use_count() == 1);

	CHECK(gm_malloc((ssize_t)size, 0, s) != p); // from the default pool again
	gm_free(p, 0, 0, s);
	int64_t reserved = stats_of(0).reserved_bytes[GM_ALL].current;
	gm_reset();
	CHECK(gm_malloc((ssize_t)size, 0, s) != p); // the graph may run again
	gm_release_pool(0, 1, 2);
	gm_reset();
	CHECK(stats_of(0).reserved_bytes[GM_ALL].current < reserved);
	gm_free(other, 0, 0, nullptr);
}

// Two graphs share a pool; it is given back when both are gone.
static void shared()
{
	Filter all = [](CUstream) { return true; };
	void *p[2];
	for (void *&one : p) {
		gm_begin_pool(0, 7, 8, &all);
		one = gm_malloc(30 * MIB, 0, nullptr);
		gm_end_pool(0, 7, 8);
	}
	for (void *one : p)
		gm_free(one, 0, 0, nullptr);
	gm_reset();
	int64_t reserved = stats_of(0).reserved_bytes[GM_ALL].current;
	gm_release_pool(0, 7, 8);
	gm_reset();
	CHECK(stats_of(0).reserved_bytes[GM_ALL].current == reserved);
	gm_release_pool(0, 7, 8);
	gm_reset();
	CHECK(stats_of(0).reserved_bytes[GM_ALL].current < reserved);
}

// A pool with no capture, as of torch.cuda.use_mem_pool: requests of this thread go there, and all else goes on as without one.
static void uncaptured(size_t size)
{
	CUstream own, other;
	OK(cuStreamCreate(&own, 1));
	OK(cuStreamCreate(&other, 1));
	gm_reset();
	int64_t before = stats_of(0).reserved_bytes[GM_ALL].current;
	gm_free(gm_malloc(40 * MIB, 0, own), 0, 0, own);
	Filter mine = [thread = pthread_self()](CUstream) { return pthread_equal(thread, pthread_self()); };
	gm_begin_pool(0, 5, 6, &mine);
	void *p = gm_malloc((ssize_t)size, 0, own);
	CHECK(p && in_segment(snapshot(), p, "[5,6]"));
	int64_t reserved = stats_of(0).reserved_bytes[GM_ALL].current;
	gm_reset();
	CHECK(stats_of(0).reserved_bytes[GM_ALL].current < reserved); // the default pool's
	gm_record_stream(p, other);
	gm_free(p, 0, 0, own);
	OK(cuCtxSynchronize());
	CHECK(gm_malloc((ssize_t)size, 0, own) == p);
	gm_end_pool(0, 5, 6);
	gm_release_pool(0, 5, 6);
	gm_free(p, 0, 0, own);
	gm_reset();
	CHECK(stats_of(0).reserved_bytes[GM_ALL].current == before);
}

// A pool that is retained and not begun, as of a torch.cuda.MemPool: it is used, and its memory is returned after its release.
static void retained()
{
	gm_reset();
	int64_t before = stats_of(0).reserved_bytes[GM_ALL].current;
	CHECK(gm_pool_uses(0, 0, 1) == -1 && gm_retain_pool(0, 0, 1) == 0 && gm_pool_uses(0, 0, 1) == 1);
	gm_begin_pool(0, 0, 1, nullptr);
	void *p = gm_malloc(30 * MIB, 0, nullptr);
	gm_end_pool(0, 0, 1);
	CHECK(gm_pool_uses(0, 0, 1) == 2);
	gm_release_pool(0, 0, 1);
	gm_free(p, 0, 0, nullptr);
	void *other = gm_malloc(30 * MIB, 0, nullptr);
	CHECK(other != p);
	int64_t reserved = stats_of(0).reserved_bytes[GM_ALL].current;
	gm_reset_pool(0, 0, 1);
	gm_reset();
	CHECK(gm_pool_uses(0, 0, 1) == 1 && stats_of(0).reserved_bytes[GM_ALL].current == reserved);
	gm_free(other, 0, 0, nullptr);
	gm_release_pool(0, 0, 1);
	CHECK(gm_pool_uses(0, 0, 1) == 0 && stats_of(0).reserved_bytes[GM_ALL].current == reserved);
	gm_reset_pool(0, 0, 1);
	int64_t left = stats_of(0).reserved_bytes[GM_ALL].current;
	CHECK(gm_pool_uses(0, 0, 1) == -1 && left < reserved && left > before); // the default pool keeps its own
	gm_reset_pool(0, 0, 1);
	gm_reset();
	CHECK(stats_of(0).reserved_bytes[GM_ALL].current == before);
	CHECK(gm_retain_pool(7, 0, 1) == -1 && gm_retain_pool(-1, 0, 1) == -1 && gm_pool_uses(7, 0, 1) == -1);
}

// The free memory of a pool serves the default pool when the device is full, if it may.
static void spare(size_t size)
{
	CUstream other;
	OK(cuStreamCreate(&other, 1));
	gm_reset();
	CHECK(gm_retain_pool(0, 0, 2) == 0);
	gm_begin_pool(0, 0, 2, nullptr);
	void *p = gm_malloc((ssize_t)size, 0, nullptr);
	gm_end_pool(0, 0, 2);
	gm_release_pool(0, 0, 2);
	gm_free(p, 0, 0, nullptr);
	gm_memory_fraction(0, 0);
	gm_pool_use_on_oom(0, 9, 9, 1); // there is no such pool
	int64_t ooms = stats_of(0).ooms;
	CHECK(!gm_try_malloc(size, 0, nullptr));
	gm_pool_use_on_oom(0, 0, 2, 1);
	CHECK(!gm_try_malloc(2 * size + 40 * MIB, 0, nullptr) && !gm_try_malloc(size, 0, other));
	CHECK(gm_try_malloc(size - 100, 0, nullptr) == p && stats_of(0).ooms == ooms + 3 && in_segment(snapshot(), p, "[0,2]"));
	CHECK(gm_pool_live(0, 0, 2, nullptr, 0) == 1);
	gm_free(p, 0, 0, nullptr);
	gm_pool_use_on_oom(0, 0, 2, 0);
	CHECK(!gm_try_malloc(size, 0, nullptr));
	gm_memory_fraction(1, 0);
	gm_release_pool(0, 0, 2);
	gm_reset_pool(0, 0, 2);
	CHECK(gm_pool_uses(0, 0, 2) == -1);
}

// A capture that begins within such a pool, in another one or in the same.
static void within(uint64_t id)
{
	Filter all = [](CUstream) { return true; };
	CUstream s;
	CUgraph graph;
	OK(cuStreamCreate(&s, 1));
	gm_begin_pool(0, 5, 6, &all);
	void *p = gm_malloc(1000, 0, nullptr), *cached = gm_malloc(40 * MIB, 0, nullptr);
	gm_begin_pool(0, id, 6, &all);
	OK(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	void *q = gm_malloc(1000, 0, s);
	gm_record_stream(p, s);
	gm_free(p, 0, 0, nullptr); // waits for the end of the capture
	gm_free(cached, 0, 0, nullptr);
	int64_t reserved = stats_of(0).reserved_bytes[GM_ALL].current;
	gm_reset();
	CHECK(gm_malloc(1000, 0, nullptr) != p && stats_of(0).reserved_bytes[GM_ALL].current >= reserved);
	OK(cuStreamEndCapture(s, &graph)); // no event has broken it
	gm_end_pool(0, id, 6);
	gm_end_pool(0, 5, 6);
	gm_free(q, 0, 0, s);
	gm_release_pool(0, id, 6);
	gm_release_pool(0, 5, 6);
}

// Without the device there is no pool.
static void failing()
{
	auto token = std::make_shared<int>(0);
	Filter filter = [token](CUstream) { return true; };
	char text[200];
	gm_begin_pool(7, 1, 2, &filter);
	CHECK(token.use_count() == 2 && gm_last_error(text, sizeof text) > 0 && strstr(text, "open device 7"));
	gm_end_pool(7, 1, 2);
	gm_release_pool(7, 1, 2);
}

// An empty function, no function at all, and one that is called from another pool.
static void odd()
{
	Filter empty;
	gm_begin_pool(0, 3, 0, &empty);
	gm_begin_pool(0, 4, 0, nullptr);
	void *p = gm_malloc(1000, 0, nullptr);
	CHECK(in_segment(snapshot(), p, "[3,0]"));
	gm_end_pool(0, 3, 0);
	void *q = gm_malloc(1000, 0, nullptr);
	CHECK(in_segment(snapshot(), q, "[4,0]"));
	gm_end_pool(0, 4, 0);
	gm_end_pool(0, 4, 0);
	gm_free(p, 0, 0, nullptr);
	gm_free(q, 0, 0, nullptr);
	for (uint64_t i = 0; i < 200; i++) // more than there is room for
		gm_begin_pool(0, 100 + i, 0, &empty);
	char text[200];
	CHECK(gm_last_error(text, sizeof text) > 0 && strstr(text, "too many"));
	CHECK((p = gm_malloc(1000, 0, nullptr)));
	gm_free(p, 0, 0, nullptr);
	for (uint64_t i = 0; i < 200; i++) {
		gm_end_pool(0, 100 + i, 0);
		gm_release_pool(0, 100 + i, 0);
	}
}

int main()
{
	start(0);
	gm_begin_pool(0, 9, 9, nullptr); // before the first request
	gm_end_pool(0, 9, 9);
	gm_release_pool(0, 9, 9);
	captured(1000);
	captured(5 * MIB);
	shared();
	uncaptured(1000);
	uncaptured(5 * MIB);
	within(5);
	within(9);
	retained();
	spare(1000);
	if (!getenv("GM_ALLOC") || strcmp(getenv("GM_ALLOC"), "gmlake")) // whose pools serve themselves alone
		spare(5 * MIB);
	failing();
	odd();
	return 0;
}
