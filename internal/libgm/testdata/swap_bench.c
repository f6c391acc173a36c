/* What the five calls for a tensor take on the host, in nanoseconds: the median and the 99th percentile. */
#include "swap.h"

#define ROUNDS 20000
#define LIVE 64

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

int main(void)
{
	static double times[ROUNDS];
	int64_t tickets[LIVE] = {0};
	start(0);
	CUstream s = stream();
	void *p = device_memory(4096);
	OK(gm_swap_open(0, 64 * MIB, 0));
	for (int i = 0; i < ROUNDS; i++) {
		int64_t *ticket = &tickets[i % LIVE];
		if (i % LIVE == 0)
			OK(cuCtxSynchronize());
		double begin = now_us();
		if (*ticket) {
			OK(gm_swap_in(0, *ticket, p, s));
			OK(gm_swap_ready(0, *ticket, s));
			OK(gm_swap_drop(0, *ticket));
		}
		*ticket = gm_swap_out(0, p, 4096, s);
		OK(gm_swap_left(0, *ticket, s));
		times[i] = now_us() - begin;
		CHECK(*ticket > 0);
	}
	qsort(times, ROUNDS, sizeof *times, by_value);
	printf("%.0f %.0f\n", times[ROUNDS / 2] * 1e3, times[ROUNDS / 100 * 99] * 1e3);
	gm_swap_close(0);
	return 0;
}
