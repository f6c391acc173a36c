/* Leaves a call to a library whose destructor runs after the driver's: it was loaded later. */
#include "start.h"

#include <dlfcn.h>

int main(int n, char **arguments)
{
	CHECK(n == 2);
	void *library = dlopen(arguments[1], RTLD_NOW);
	CHECK(library);
	start();
	*(CUresult(**)(size_t *, size_t *))dlsym(library, "late_call") = cuMemGetInfo_v2;
	return 0;
}
