/* Forks, as a DataLoader does, while other threads allocate: the children can neither allocate nor hang, and the parent goes on. */
#include "check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static atomic_bool stop;

static void *busy(void *unused)
{
	void *p[8] = {0};
	(void)unused;
	for (unsigned i = 0; !stop; i++) {
		gm_free(p[i % 8], 0, 0, NULL);
		CHECK((p[i % 8] = gm_try_malloc(1000 << i % 12, 0, NULL)));
	}
	for (int i = 0; i < 8; i++)
		gm_free(p[i], 0, 0, NULL);
	return NULL;
}

static void in_child(void *p)
{
	char text[200];
	size_t size;
	struct gm_stats s;
	alarm(20);
	CHECK(!gm_try_malloc(1000, 0, NULL) && !gm_malloc(1000, 0, NULL));
	CHECK(gm_last_error(text, sizeof text) > 0 && strstr(text, "forked"));
	for (int i = 0; i < 5000; i++) /* more than the queue holds */
		gm_free(p, 0, 0, NULL);
	gm_record_stream(p, NULL);
	gm_reset();
	gm_begin_pool(0, 1, 2, NULL);
	gm_end_pool(0, 1, 2);
	gm_release_pool(0, 1, 2);
	gm_reset_pool(0, 1, 2);
	gm_pool_use_on_oom(0, 1, 2, 1);
	CHECK(gm_retain_pool(0, 1, 2) == -1 && gm_pool_uses(0, 1, 2) == -1);
	CHECK(gm_pool_live(0, 1, 2, NULL, 0) == -1 && gm_pool_restore(0, 1, 2, NULL, 0) == -1);
	gm_observe_segments(NULL);
	CHECK(!gm_share(p, text, sizeof text) && !gm_open_shared("x", 1, 0));
	gm_close_shared(p);
	gm_memory_fraction(0.5, 0);
	gm_reset_peak_stats(0);
	CHECK(gm_get_stats(0, &s) == -1);
	CHECK(!gm_base_alloc(p, &size));
	CHECK(gm_snapshot(text, sizeof text) == 2);
}

int main(void)
{
	pthread_t threads[3];
	void *p = gm_try_malloc(5 * MIB, 0, NULL);
	CHECK(p);
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, busy, NULL);
	for (int i = 0; i < 40; i++) {
		pid_t child = fork();
		if (!child) {
			in_child(p);
			if (i % 2)
				_exit(0);
			exit(0); /* destructors run */
		}
		int status;
		CHECK(waitpid(child, &status, 0) == child && status == 0);
	}
	stop = true;
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	gm_free(p, 0, 0, NULL);
	gm_reset();
	CHECK(stats_of(0).reserved_bytes[GM_ALL].current == 0);
	return 0;
}
