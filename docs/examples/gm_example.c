/* Memory of GPU 0 from gm's allocator, with neither PyTorch nor the CUDA headers.
 *
 *     cc -I internal/libgm docs/examples/gm_example.c -o example -L bin -lgm -Wl,-rpath,$PWD/bin */
#include <stdio.h>

#include "gm.h"

int main(void)
{
	void *p = gm_try_malloc(100 << 20, 0, NULL); /* for work on the default stream */
	if (!p) {
		char why[1024];
		gm_last_error(why, sizeof why);
		fprintf(stderr, "%s\n", why);
		return 1;
	}
	gm_free(p, 100 << 20, 0, NULL); /* kept for the next request of this size, or for others */
	struct gm_stats s;
	if (gm_get_stats(0, &s) == 0)
		printf("%lld bytes reserved, %lld at the peak in use, %lld calls of the driver\n", (long long)s.reserved_bytes[GM_ALL].current,
		       (long long)s.requested_bytes[GM_ALL].peak, (long long)s.driver_calls);
	gm_reset(); /* back to the driver */
	return 0;
}
