/* Initialisation and shutdown of the driver in a process, and the checks at every entry point. */
#include "driver.h"

pthread_mutex_t driver_mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool initialised, forked, shut;
_Thread_local bool in_host_function;
_Thread_local const char *entered;

void lock(void) { pthread_mutex_lock(&driver_mutex); }
void unlock(void) { pthread_mutex_unlock(&driver_mutex); }

/* As with the real driver, nothing of an initialised parent works in its child. */
static void after_fork_in_child(void)
{
	unlock();
	if (initialised)
		forked = true;
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(lock, unlock, after_fork_in_child);
}

__attribute__((destructor)) static void shut_down(void)
{
	shut = true;
}

CUresult enter(const char *function, enum need need)
{
	entered = function;
	if (shut)
		return CUDA_ERROR_DEINITIALIZED;
	if (forked || !initialised)
		return CUDA_ERROR_NOT_INITIALIZED;
	if (in_host_function)
		return CUDA_ERROR_NOT_PERMITTED;
	if (need == NEED_CONTEXT) {
		CUresult r = context_check();
		if (r != CUDA_SUCCESS)
			return r;
	}
	CUresult r = capture_check(function);
	return r == CUDA_SUCCESS ? fault_check(function) : r;
}

CUresult cuInit(unsigned flags)
{
	if (shut)
		return CUDA_ERROR_DEINITIALIZED;
	if (forked)
		return CUDA_ERROR_NOT_INITIALIZED;
	CUresult r = fault_check(__func__);
	if (r != CUDA_SUCCESS)
		return r;
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (fake_devices() == 0)
		return CUDA_ERROR_NO_DEVICE;
	lock();
	if (!initialised)
		counts_attach();
	initialised = true;
	unlock();
	return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version)
{
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	*version = FAKE_DRIVER_VERSION;
	return CUDA_SUCCESS;
}
