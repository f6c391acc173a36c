// Private pools chosen by a std::function, with a capture going on, and their memory afterwards.
extern "C" {
#include "check.h"
}
#include <functional>
#include <memory>
#include <string>

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
	odd();
	return 0;
}
