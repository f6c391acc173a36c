/* The gate, if the program was started with one, and the connection to the memory server. */
#define _GNU_SOURCE
#include "libgm.h"

#include <dlfcn.h>
#include <unistd.h>

#include "_cgo_export.h"

static struct {
	__typeof__(gm_gate_close) *close;
	__typeof__(gm_gate_open) *open;
	__typeof__(gm_gate_exempt) *exempt;
	__typeof__(gm_gate_pass) *pass;
	__typeof__(gm_gate_await) *await;
	__typeof__(gm_gate_calls) *calls;
	__typeof__(gm_gate_passed_on) *passed_on;
} gate;

_Atomic int gm_server_socket = -1;
atomic_bool gm_served;

/* A child would keep the connection open behind its parent's end. */
static void in_child(void)
{
	int fd = atomic_exchange(&gm_server_socket, -1);
	if (fd >= 0)
		close(fd);
	atomic_store(&gm_served, false);
}

__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(NULL, NULL, in_child); }

static void find_gate(void)
{
	gate.close = dlsym(RTLD_DEFAULT, "gm_gate_close");
	gate.open = dlsym(RTLD_DEFAULT, "gm_gate_open");
	gate.exempt = dlsym(RTLD_DEFAULT, "gm_gate_exempt");
	gate.pass = dlsym(RTLD_DEFAULT, "gm_gate_pass");
	gate.await = dlsym(RTLD_DEFAULT, "gm_gate_await");
	gate.calls = dlsym(RTLD_DEFAULT, "gm_gate_calls");
	gate.passed_on = dlsym(RTLD_DEFAULT, "gm_gate_passed_on");
}

static bool make_room(int device, size_t bytes) { return !gm_in_child() && go_room_for_cuda(device, bytes); }

/* A program may make a context before it allocates: it is a job of the server from then on. */
__attribute__((constructor)) static void offer_room(void)
{
	__typeof__(gm_gate_on_full) *on_full = dlsym(RTLD_DEFAULT, "gm_gate_on_full");
	if (on_full)
		on_full(make_room);
}

bool gm_find_gate(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, find_gate);
	return gate.close && gate.open && gate.exempt && gate.pass && gate.await && gate.calls && gate.passed_on;
}

const char *gm_set_gate(bool open, int timeout_ms)
{
	if (!open)
		return gate.close(timeout_ms);
	gate.open();
	return NULL;
}

void gm_pass_gate(bool pass) { gate.exempt(pass); }

void gm_enter_gate(void)
{
	gate.pass();
	gate.exempt(true);
}

uint32_t gm_await_gate(uint32_t seen) { return gate.await(seen); }
uint64_t gm_gated_calls(void) { return gate.calls(); }
size_t gm_passed_on(uint64_t *addresses, size_t room) { return gate.passed_on(addresses, room); }

bool gm_ask_room(int device, size_t size)
{
	/* How many requests in a row failed although the memory was there when they had. */
	static __thread unsigned spare __attribute__((tls_model("initial-exec")));
	enum { SPARE = 3 };
	if (!atomic_load_explicit(&gm_served, memory_order_relaxed))
		return false;
	switch (go_ask_room(device, size)) {
	case GM_ROOM_MADE:
		spare = 0;
		return true;
	case GM_ROOM_THERE:
		if (spare++ < SPARE)
			return true;
	}
	spare = 0;
	return false;
}
