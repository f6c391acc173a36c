/* Small requests use up the table of blocks while another thread's large request, which needs a row of it, waits for the driver. */
#include "check.h"

#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

enum { SMALL = 4096 };

static sem_t ready;

static void *request_large(void *data)
{
	start(0);
	sem_post(&ready);
	*(void **)data = gm_try_malloc(64 * MIB, 0, NULL);
	return NULL;
}

int main(void)
{
	static void *small[SMALL];
	void *large = NULL;
	pthread_t thread;
	start(0);
	sem_init(&ready, 0, 0);
	small[0] = gm_try_malloc(512, 0, NULL);
	OK(pthread_create(&thread, NULL, request_large, &large));
	sem_wait(&ready);
	usleep(50000);
	for (int i = 1; i < SMALL; i++)
		CHECK((small[i] = gm_try_malloc(512, 0, NULL)));
	OK(pthread_join(thread, NULL));
	CHECK(large);
	struct gm_stats s = stats_of(0);
	CHECK(s.allocation[GM_ALL].current == SMALL + 1 && s.reserved_bytes[GM_SMALL].current == 2 * MIB);
	gm_free(large, 0, 0, NULL);
	for (int i = 0; i < SMALL; i++)
		gm_free(small[i], 0, 0, NULL);
	gm_reset();
	s = stats_of(0);
	CHECK(s.allocation[GM_ALL].current == 0 && s.reserved_bytes[GM_ALL].current == 0);
	return 0;
}
