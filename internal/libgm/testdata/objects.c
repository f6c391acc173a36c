/* objects: a store that is too small for its objects. */
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { OBJECTS = 12 };

static int64_t gone[OBJECTS];
static int n_gone;

static void evicted(void *user, int64_t object)
{
	CHECK(user == &n_gone);
	if (n_gone < OBJECTS)
		gone[n_gone] = object;
	n_gone++;
}

static bool says(const char *text)
{
	char error[500];
	gm_last_error(error, sizeof error);
	if (!strstr(error, text))
		fprintf(stderr, "the error is %s\n", error);
	return strstr(error, text);
}

static void refuses(int64_t store, int64_t object)
{
	struct gm_store_options wrong = {.policy = "random"}, far = {.peers = "1, next"};
	void *p;
	CHECK(!gm_store_open(0, &wrong) && says("there are lru, fifo, size-lru and latency"));
	CHECK(!gm_store_open(0, &far) && says("\"next\" is no number of a device"));
	CHECK(!gm_store_open(99, NULL) && says("not valid"));
	CHECK(!gm_store_create(store + 1, 1, NULL, &p) && says("no store that is open"));
	CHECK(!gm_store_create(store, 1, NULL, NULL) && says("nowhere"));
	CHECK(!gm_store_create(store, SIZE_MAX, NULL, &p) && says("an object of"));
	CHECK(!gm_store_get(store, object + 99, 1, NULL) && says("no object of this store"));
	CHECK(gm_store_get_stats(store, NULL) == -1 && says("nowhere"));
	pid_t child = fork();
	if (child == 0)
		_exit(gm_store_put(store, object, 0, NULL) == -1 && says("forked") ? 0 : 1);
	int status;
	CHECK(waitpid(child, &status, 0) == child && status == 0);
}

int main(void)
{
	static char want[8 * MIB], got[8 * MIB];
	int64_t ids[OBJECTS];
	void *where[OBJECTS];
	struct gm_store_stats stats;
	start(0);
	struct gm_store_options options = {.limit = 32 * MIB, .host = 256 * MIB, .policy = "fifo", .server = "", .evicted = evicted, .user = &n_gone};
	int64_t store = gm_store_open(0, &options);
	CHECK(store > 0);
	for (int i = 0; i < OBJECTS; i++) {
		CHECK((ids[i] = gm_store_create(store, sizeof want, NULL, &where[i])));
		memset(want, i + 1, sizeof want);
		OK(cuMemcpyHtoD_v2(at(where[i]), want, sizeof want));
		OK(gm_store_put(store, ids[i], INT64_MAX, NULL));
		CHECK(gm_store_put(store, ids[i], INT64_MAX, NULL) == -1 && says("as often as"));
	}
	CHECK(n_gone == OBJECTS - 4 && gone[0] == ids[0] && gone[7] == ids[7]);
	refuses(store, ids[0]);
	for (int i = 0; i < OBJECTS; i++) {
		CHECK(gm_store_get(store, ids[i], 0, NULL) == where[i]);
		memset(want, i + 1, sizeof want);
		OK(cuMemcpyDtoH_v2(got, at(where[i]), sizeof got));
		CHECK(memcmp(got, want, sizeof got) == 0);
		OK(gm_store_put(store, ids[i], i, NULL));
	}
	OK(gm_store_get_stats(store, &stats));
	CHECK(stats.objects == OBJECTS && stats.card_bytes == 32 * MIB && stats.gets == OBJECTS && stats.misses > 0);
	CHECK(stats.host_bytes == (OBJECTS - 4) * (int64_t)sizeof want && stats.clean > 0);
	for (int i = 0; i < OBJECTS; i++)
		OK(gm_store_free(store, ids[i], NULL));
	OK(gm_store_close(store));
	CHECK(gm_store_close(store) == -1 && says("no store that is open"));
	return 0;
}
