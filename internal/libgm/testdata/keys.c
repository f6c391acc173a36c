/* keys KEY [hold]: opens a key in this process, makes what is not there, checks what is, and with "hold" keeps it until a line comes. It says
 * whether it made or found it. */
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static bool says(const char *text)
{
	char error[500];
	gm_last_error(error, sizeof error);
	if (!strstr(error, text))
		fprintf(stderr, "the error is %s\n", error);
	return strstr(error, text);
}

/* memories returns how many descriptors of memory this process has. The fake driver has some of its own. */
static int memories(void)
{
	char name[40], target[20];
	int n = 0;
	for (int fd = 0; fd < 1000; fd++) {
		snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
		if (readlink(name, target, sizeof target) > 7 && !strncmp(target, "/memfd:", 7))
			n++;
	}
	return n;
}

/* refuses calls what must fail, and leaves all as it is. */
static void refuses(struct gm_key *k)
{
	struct gm_key other;
	CHECK(gm_key_open(0, "", &other) == -1 && says("a key has 1 to 255 bytes"));
	CHECK(gm_key_open(99, "k", &other) == -1 && says("not valid"));
	CHECK(gm_key_open(0, NULL, &other) == -1 && says("no key"));
	CHECK(!gm_key_make(k->id, MIB) && says("has its memory"));
	CHECK(!gm_key_make(k->id + 1, MIB) && says("no key that is open"));
	CHECK(gm_key_freeze(k->id) == -1 && says("no memory that could be frozen"));
	CHECK(gm_key_write(k->id, 0, "x", 1) == -1 && says("is frozen"));
	int before = memories();
	pid_t child = fork();
	if (child == 0)
		_exit(gm_key_open(0, "k", &other) == -1 && says("forked") && memories() == before - 1 ? 0 : 1);
	int status;
	CHECK(waitpid(child, &status, 0) == child && status == 0);
}

int main(int argc, char **argv)
{
	static char want[3 * MIB], got[3 * MIB];
	memset(want, argv[1][0], sizeof want);
	start(0);
	struct gm_key k;
	if (gm_key_open(0, argv[1], &k) != 0) {
		char error[500];
		gm_last_error(error, sizeof error);
		puts(error);
		return 2;
	}
	bool make = !k.address;
	CHECK(k.id > 0 && k.size == (make ? 0 : 4 * MIB));
	if (make) {
		CHECK(gm_key_freeze(k.id) == -1 && gm_key_write(k.id, 0, "x", 1) == -1);
		CHECK((k.address = gm_key_make(k.id, sizeof want)));
		CHECK(gm_key_write(k.id, 4 * MIB - 1, want, 2) == -1 && gm_key_write(k.id, SIZE_MAX, want, 1) == -1);
		OK(gm_key_write(k.id, 0, want, MIB));
		OK(cuMemcpyHtoD_v2((CUdeviceptr)(uintptr_t)k.address + MIB, want, sizeof want - MIB));
		OK(gm_key_freeze(k.id));
	}
	OK(cuMemcpyDtoH_v2(got, (CUdeviceptr)(uintptr_t)k.address, sizeof got));
	CHECK(memcmp(got, want, sizeof got) == 0);
	refuses(&k);
	puts(make ? "made" : "found");
	fflush(stdout);
	if (argc > 2)
		getchar();
	OK(gm_key_close(k.id));
	CHECK(gm_key_close(k.id) == -1 && says("no key that is open"));
	return 0;
}
