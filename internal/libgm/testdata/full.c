/* On a full device a small request waits for a block that was freed and that another stream still uses. */
#include "check.h"

#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

static sem_t gate;

static void at_gate(void *data)
{
	(void)data;
	sem_wait(&gate);
}

static void *open_gate(void *data)
{
	(void)data;
	usleep(100000);
	sem_post(&gate);
	return NULL;
}

int main(void)
{
	CUstream other;
	pthread_t opener;
	start(0);
	OK(cuStreamCreate(&other, 1));
	sem_init(&gate, 0, 0);
	void *p = gm_try_malloc(MIB, 0, NULL), *q = gm_try_malloc(MIB, 0, NULL);
	CHECK(p && q && !gm_try_malloc(MIB, 0, NULL));
	gm_record_stream(p, other);
	OK(cuLaunchHostFunc(other, at_gate, NULL));
	gm_free(p, 0, 0, NULL);
	OK(pthread_create(&opener, NULL, open_gate, NULL));
	void *again = gm_try_malloc(MIB, 0, NULL);
	CHECK(again == p);
	OK(pthread_join(opener, NULL));
	gm_free(again, 0, 0, NULL);
	gm_free(q, 0, 0, NULL);
	gm_reset();
	return 0;
}
