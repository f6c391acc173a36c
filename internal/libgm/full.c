/* Who makes room on a device when a request finds none. */
#include "libgm.h"

static gm_relief *_Atomic relief;

void gm_on_full(gm_relief *f) { atomic_store(&relief, f); }

bool gm_relieved(void) { return atomic_load(&relief); }

static __thread bool last __attribute__((tls_model("initial-exec")));

int gm_asked_last(void) { return last; }

static size_t ask(int device, size_t size, void *stream)
{
	gm_relief *f = atomic_load(&relief);
	return f ? f(device, size, stream) : 0;
}

size_t gm_make_room(int device, size_t size, void *stream)
{
	bool outer = last;
	last = false;
	size_t room = ask(device, size, stream);
	last = outer;
	return room;
}

bool gm_last_resort(int device, size_t size, void *stream, void **p)
{
	bool outer = last;
	void *others = gm_take_borrowed(); /* of a request within whose last call this one is made */
	last = true;
	size_t room = ask(device, size, stream);
	last = outer;
	void *borrowed = gm_take_borrowed();
	gm_keep_borrowed(others);
	if (room == GM_BORROW)
		*p = borrowed;
	else if (borrowed)
		gm_give_back(borrowed);
	return room == GM_BORROW ? borrowed != NULL : room != 0;
}
