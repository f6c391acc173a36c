/* A program that loads a CUDA driver, finds no use for it and unloads it, and then loads a library that has functions of the same names: built with
 * WHOSE they are the two libraries, whose functions return that. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef WHOSE
#define FUNCTION(name) int name(void); int name(void) { return WHOSE; }
FUNCTION(cuInit)
FUNCTION(cuMemHostAlloc)
FUNCTION(cuArrayDestroy)
#else
typedef int function(void);

static function *find(void *library, const char *name)
{
	function *found = library ? (function *)dlsym(library, name) : NULL;
	if (!found) {
		fprintf(stderr, "%s: %s\n", name, dlerror());
		exit(8);
	}
	return found;
}

int main(int argc, char **argv)
{
	(void)argc;
	for (int i = 0; i < 3; i++) {
		void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
		printf("driver %d\n", find(driver, "cuInit")());
		if (dlclose(driver))
			return 8;
		for (int k = 0; k < 200; k++) /* where the loader kept what it knew of the driver */
			memset(malloc(1200), 0x41, 1200);
		void *other = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
		find(other, "cuMemHostAlloc");
		printf("other %d\n", find(other, "cuInit")());
		if (dlclose(other))
			return 8;
	}
	return 0;
}
#endif
