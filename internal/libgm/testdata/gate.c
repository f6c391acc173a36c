/* The gate is opened and closed again at once, while a thread calls the driver without end: whoever closes it hears each time that a call waits. */
#include "check.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "gate/gate.h"

static CUdeviceptr p;
static atomic_bool over;

static void *call(void *unused)
{
	start(0);
	while (!over)
		OK(cuMemsetD8_v2(p, 1, 1));
	return unused;
}

int main(void)
{
	__typeof__(gm_gate_close) *shut = dlsym(RTLD_DEFAULT, "gm_gate_close");
	__typeof__(gm_gate_open) *open = dlsym(RTLD_DEFAULT, "gm_gate_open");
	__typeof__(gm_gate_await) *await = dlsym(RTLD_DEFAULT, "gm_gate_await");
	pthread_t thread;
	uint32_t seen = 0;
	CHECK(shut && open && await);
	alarm(30);
	start(0);
	OK(cuMemAlloc_v2(&p, 4));
	CHECK(pthread_create(&thread, NULL, call, NULL) == 0);
	for (int i = 0; i < 500; i++) {
		CHECK(!shut(10000));
		seen = await(seen);
		open();
	}
	over = true;
	pthread_join(thread, NULL);
	return 0;
}
