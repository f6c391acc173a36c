/* Memory that is unmapped while work in a stream still needs it: the context is lost, the process is not. */
#include "start.h"

#include <pthread.h>

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void at_gate(void *data)
{
	(void)data;
	pthread_mutex_lock(&gate);
	pthread_mutex_unlock(&gate);
}

int main(void)
{
	CUmemAllocationProp prop = on_device(0);
	CUmemAccessDesc rw = access_of(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	CUmemGenericAllocationHandle h;
	CUdeviceptr p;
	CUstream s;
	start();
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cuMemCreate(&h, 2 * MIB, &prop, 0));
	OK(cuMemAddressReserve(&p, 2 * MIB, 0, 0, 0));
	OK(cuMemMap(p, 2 * MIB, 0, h, 0));
	OK(cuMemSetAccess(p, 2 * MIB, &rw, 1));
	pthread_mutex_lock(&gate);
	OK(cuLaunchHostFunc(s, at_gate, NULL));
	OK(cuMemsetD32Async(p, 1, MIB / 2, s));
	OK(cuMemUnmap(p, 2 * MIB));
	pthread_mutex_unlock(&gate);
	GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamSynchronize(s));
	GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemAlloc_v2(&p, MIB));
	return 0;
}
