// A request that cannot be met throws through C; the program goes on.
#include "c10.h"
extern "C" {
#include "check.h"
}
#include <malloc.h>

template <typename Call> static std::string failed(Call call)
{
	try {
		call();
#ifdef OTHER
	} catch (c10::Error &e) {
#else
	} catch (c10::OutOfMemoryError &e) {
#endif
		CHECK(c10::errors == 1);
		return e.what();
	}
	return "";
}

static std::string full() { return failed([] { gm_malloc((ssize_t)(2 * GIB), 0, nullptr); }); }

static bool has(const std::string &text, const char *part) { return text.find(part) != std::string::npos; }

int main()
{
	start(0);
	void *held[3];
	for (void *&p : held)
		CHECK((p = gm_malloc(3 * GIB, 0, nullptr)));
	std::string text = full();
	printf("%s\n", text.c_str());
	CHECK(text.rfind("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 10.00 GiB of which ", 0) == 0);
	CHECK(has(text, "9.00 GiB is allocated") && has(text, "The largest live blocks: 3.00 GiB.") && has(text, "3 x 3.00 GiB"));
	CHECK(has(text, "(gm_malloc)"));
	CHECK(c10::errors == 0);
	size_t before = mallinfo2().uordblks;
	for (int i = 0; i < 1000; i++)
		full();
	CHECK(mallinfo2().uordblks < before + 100000);
	CHECK(stats_of(0).ooms == 1001);
	CHECK(has(failed([] { gm_begin_pool(7, 1, 2, nullptr); }), "open device 7"));
	gm_free(held[0], 0, 0, nullptr);
	CHECK((held[0] = gm_malloc(2 * GIB, 0, nullptr)));
	return 0;
}
