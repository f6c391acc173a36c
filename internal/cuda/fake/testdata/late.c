/* A library that still uses the driver when the driver has gone. */
#include "cuda_api.h"

#include <stdio.h>

extern CUresult (*late_call)(size_t *, size_t *);
CUresult (*late_call)(size_t *, size_t *);

__attribute__((destructor)) static void late(void)
{
	size_t free, total;
	printf("%d\n", late_call ? (int)late_call(&free, &total) : -1);
	fflush(stdout);
}
