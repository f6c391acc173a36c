/* Frees that come after the driver, and maybe the library, have ended; and others that never come. */
#include "check.h"

#include <unistd.h>

static void *kept[3000];
static int freed;

static void late(void)
{
	for (int i = 0; i < 1500; i++, freed++)
		gm_free(kept[freed], 0, 0, NULL);
	gm_free(gm_try_malloc(MIB, 0, NULL), 0, 0, NULL);
	gm_reset();
}

__attribute__((destructor)) static void latest(void) { late(); }

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	atexit(late);
	for (int i = 0; i < 3000; i++)
		CHECK((kept[i] = gm_try_malloc(1000 + (size_t)i * 3000, 0, NULL)));
	gm_record_stream(kept[0], (void *)(uintptr_t)2);
	if (!strcmp(how, "_exit"))
		_exit(0);
	return 0;
}
