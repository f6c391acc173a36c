/* A child of a process that uses the driver cannot; a child of one that does not yet, can. */
#include "start.h"

#include <sys/wait.h>
#include <unistd.h>

static int status_of(pid_t child)
{
	int status;
	CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
	return WEXITSTATUS(status);
}

int main(void)
{
	CUdeviceptr p, q;
	pid_t child = fork();
	if (child == 0) {
		start();
		OK(cuMemAlloc_v2(&p, MIB));
		_exit(0);
	}
	CHECK(status_of(child) == 0);

	start();
	OK(cuMemAlloc_v2(&p, 16 * MIB));
	child = fork();
	if (child == 0) {
		size_t free, total;
		GIVES(CUDA_ERROR_NOT_INITIALIZED, cuMemAlloc_v2(&q, MIB));
		GIVES(CUDA_ERROR_NOT_INITIALIZED, cuMemFree_v2(p));
		GIVES(CUDA_ERROR_NOT_INITIALIZED, cuMemGetInfo_v2(&free, &total));
		GIVES(CUDA_ERROR_NOT_INITIALIZED, cuInit(0));
		_exit(0);
	}
	CHECK(status_of(child) == 0);
	OK(cuMemAlloc_v2(&q, 4 * MIB));
	OK(cuMemFree_v2(q));
	return 0;
}
