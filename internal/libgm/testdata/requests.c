/* Makes the requests that standard input lists, and prints the peaks of what is allocated and reserved, in bytes, and a hash of where small
 * requests lie in their segments. A request has a number, a size and a stream; with size 0 it is freed, with size -1 while another stream
 * uses it. */
#include "check.h"

struct step {
	int64_t request, size, stream;
};

enum { REQUESTS = 1 << 21, STREAMS = 64 };

int main(void)
{
	static struct { void *p; int64_t stream; } live[REQUESTS];
	CUstream streams[STREAMS + 1] = {0};
	struct step s;
	uint64_t hash = 14695981039346656037u; /* FNV-1a */
	start(0);
	for (int i = 1; i <= STREAMS; i++)
		OK(cuStreamCreate(&streams[i], 1));
	while (fread(&s, sizeof s, 1, stdin) == 1) {
		CHECK(s.request >= 0 && s.request < REQUESTS && s.stream >= 0 && s.stream < STREAMS);
		if (s.size > 0) {
			live[s.request].p = gm_try_malloc((size_t)s.size, 0, streams[s.stream]);
			live[s.request].stream = s.stream;
			CHECK(live[s.request].p);
			if (s.size <= (int64_t)MIB)
				hash = (hash ^ at(live[s.request].p) % (2 * MIB)) * 1099511628211u;
			continue;
		}
		if (s.size < 0)
			gm_record_stream(live[s.request].p, streams[STREAMS]);
		gm_free(live[s.request].p, 0, 0, streams[live[s.request].stream]);
	}
	struct gm_stats now = stats_of(0);
	printf("%lld %lld %llu\n", (long long)now.allocated_bytes[GM_ALL].peak, (long long)now.reserved_bytes[GM_ALL].peak,
	       (unsigned long long)hash);
	return 0;
}
