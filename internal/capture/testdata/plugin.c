/* A library that asks the CUDA runtime for memory, as an extension of Python does. */
#include "cudart.h"

int plugin(void);
int plugin(void)
{
	void *p;
	return (int)cudaMalloc(&p, 1021);
}
