/* Memory that one process allocates and another opens. The other one is this program again, with the word "open", which reads handles from
 * its standard input and answers each on its standard output. With the words "here" or "there" and names of the driver's calls, each call
 * fails in this process or in the other one once at each position, and once from there on. It prints how many faults there were. */
#include "check.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_fault.h"

#define HANDLE (1 << 20)
#define SHARED 12

static bool tolerant; /* calls of the driver may fail now */

/* Of the other process. */

static bool mapped(const void *p)
{
	CUdeviceptr base;
	size_t size;
	return cuMemGetAddressRange_v2(&base, &size, at(p)) == 0;
}

/* request obeys a line that sets a fault, or ends it, after which nothing that was open may be mapped. It answers with the faults so far. */
static void request(const char *line, void *const *open, int count)
{
	char name[64];
	unsigned long position;
	int onwards, error;
	CHECK(sscanf(line, "!%63s %lu %d %d", name, &position, &onwards, &error) == 4);
	fake_fault_at(name, position, onwards, (CUresult)error);
	tolerant = position > 0;
	for (int i = 0; i < 2 && !tolerant; i++)
		gm_reset();
	for (int i = 0; i < count && !tolerant; i++)
		CHECK(!mapped(open[i]));
	printf("%lu\n", fake_fault_count());
}

/* Each line is a fault, or a word that must be there, and a handle. It answers a handle with y, or n and why not. */
static int other(void)
{
	static char line[HANDLE];
	void *open[64] = {0};
	int count = 0, closed = 0;
	start(0);
	while (fgets(line, sizeof line, stdin)) {
		if (*line == '!') {
			request(line, open, closed);
			fflush(stdout);
			continue;
		}
		char *handle, why[400];
		unsigned long word = strtoul(line, &handle, 10);
		size_t n = strlen(++handle) - 1;
		unsigned got;
		if (n == 0) { /* all is closed, which was opened twice */
			for (int i = 0; i < count; i++)
				gm_close_shared(open[i]);
			for (int i = 0; i < count; i++)
				CHECK(mapped(open[i]));
			for (int i = 0; i < count; i++)
				gm_close_shared(open[i]);
			for (int i = 0; i < count; i++)
				CHECK(!mapped(open[i]) || tolerant);
			closed = count;
			count = 0;
			puts("y");
		} else if ((open[count] = gm_open_shared(handle, n, 0))) {
			OK(cuMemcpyDtoH_v2(&got, at(open[count]), 4));
			CHECK(got == word);
			OK(cuMemsetD32Async(at(open[count]), (unsigned)word + 1, 1, NULL));
			CHECK(gm_open_shared(handle, n, 0) == open[count]);
			count++;
			puts("y");
		} else {
			CHECK(gm_last_error(why, sizeof why) > 0);
			printf("n %s\n", why);
		}
		fflush(stdout);
	}
	struct gm_stats s;
	CHECK(gm_get_stats(0, &s) == 0 ? s.reserved_bytes[GM_ALL].current == 0 && s.allocation[GM_ALL].current == 0 : !count);
	return 0;
}

/* Of this one. */

static FILE *to, *from;
static pid_t child;

static void begin_other(const char *self)
{
	int in[2], out[2];
	CHECK(pipe(in) == 0 && pipe(out) == 0);
	child = fork();
	if (!child) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		close(in[1]);
		close(out[0]);
		execl(self, self, "open", NULL);
		_exit(9);
	}
	close(in[0]);
	close(out[1]);
	to = fdopen(in[1], "w");
	from = fdopen(out[0], "r");
}

static void end_other(void)
{
	int status;
	fclose(to);
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	fclose(from);
}

/* answer has the other process open memory, and returns NULL, or why it could not. */
static const char *answer(unsigned word, const char *handle)
{
	static char text[500];
	fprintf(to, "%u %s\n", word, handle);
	fflush(to);
	if (!fgets(text, sizeof text, from))
		return "it has ended";
	return text[0] == 'y' ? NULL : text;
}

/* share returns whether the other process has opened an address. */
static bool share(char *p, unsigned word)
{
	static char handle[HANDLE];
	size_t n = gm_share(p, handle, sizeof handle - 1);
	unsigned got;
	char why[400];
	if (!n) {
		CHECK(gm_last_error(why, sizeof why) > 0 && tolerant);
		return false;
	}
	CHECK(n < sizeof handle);
	handle[n] = 0;
	for (size_t i = 0; i < n; i++)
		CHECK(handle[i] >= ' ' && handle[i] <= '~');
	CHECK(gm_share(p, NULL, 0) == n || tolerant);
	OK(cuMemsetD32Async(at(p), word, 1, NULL));
	OK(cuStreamSynchronize(NULL));
	const char *not = answer(word, handle);
	if (not && tolerant)
		return false;
	if (not)
		fprintf(stderr, "%s", not);
	CHECK(!not);
	for (int i = 0; i < 1000; i++) { /* the other process does not wait for its work */
		OK(cuMemcpyDtoH_v2(&got, at(p), 4));
		if (got == word + 1)
			break;
		usleep(1000);
	}
	CHECK(got == word + 1);
	return true;
}

static void refused(const char *handle, const char *why)
{
	const char *not = answer(0, handle);
	CHECK(not && strstr(not, why));
}

/* A process of another user gets no answer, even with the secret. Only root can try. */
static void foreign(const char *token)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	int n = snprintf(to.sun_path + 1, sizeof to.sun_path - 1, "gm-share-%.32s", token), status;
	char request[40] = {0}, got;
	for (int i = 0; i < 16; i++) {
		unsigned byte;
		CHECK(sscanf(token + 32 + 2 * i, "%2x", &byte) == 1);
		request[i] = (char)byte;
	}
	for (int user = 0; user < 2 && geteuid() == 0; user++) {
		pid_t other = fork();
		if (!other) {
			int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
			if (user && setuid(65534) != 0)
				_exit(user); /* not as root of a user namespace of one user */
			if (connect(fd, (struct sockaddr *)&to, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)))
				_exit(9);
			send(fd, request, sizeof request, MSG_NOSIGNAL);
			_exit(recv(fd, &got, 1, 0) != 1);
		}
		CHECK(waitpid(other, &status, 0) == other && WIFEXITED(status) && WEXITSTATUS(status) == user);
	}
}

static void odd(char *p)
{
	static char handle[HANDLE];
	char why[400];
	CHECK(gm_share((void *)(uintptr_t)4096, handle, 10) == 0 && gm_last_error(why, sizeof why) && strstr(why, "live request"));
	CHECK(!gm_share(NULL, handle, 10) && !gm_open_shared(NULL, 0, 0) && !gm_open_shared("x", 1, -1) && !gm_open_shared("x", 1, 40));
	refused("gm1 pieces", "no handle of gm_share");
	refused("gm1 ipc 1 0 00", "no handle of gm_share");
	refused("gm1 pieces 1 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff 0 0 1:1:1", "no handle of gm_share");
	refused("gm1 pieces 1 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff 0 0 1:1:200000", "it has ended");
	size_t n = gm_share(p, handle, sizeof handle - 1);
	handle[n] = 0;
	char *token = strstr(handle, "pieces ");
	if (!token)
		return; /* GM_ALLOC=torch has none */
	char *last = strrchr(handle, ' ') + 1, *serial = strchr(last, ':') + 1;
	*serial = *serial == 'f' ? 'e' : 'f'; /* that of another piece, which may have had the same handle */
	refused(handle, "was released");
	memcpy(last, "ffffff:1:200000", 16);
	refused(handle, "was released");
	token = strchr(token + 7, ' ') + 1;
	foreign(token);
	token += 40; /* in the secret */
	*token = *token == '0' ? '1' : '0';
	refused(handle, "it does not answer");
}

/* shared_round makes requests, has them opened twice, and frees them. It returns how many could be opened. */
static int shared_round(const size_t *sizes, int count)
{
	char *p[SHARED];
	int done = 0;
	for (int i = 0; i < count; i++) {
		p[i] = gm_try_malloc(sizes[i], 0, NULL);
		if (!p[i]) {
			CHECK(tolerant);
			continue;
		}
		done += share(p[i] + (sizes[i] / 2 & ~(size_t)3), 1000 * (unsigned)i + 7) && share(p[i], 1000 * (unsigned)i + 1);
	}
	const char *closed = answer(0, "");
	CHECK(tolerant || !closed);
	for (int i = 0; i < count; i++)
		gm_free(p[i], 0, 0, NULL);
	return done;
}

static void job(void)
{
	size_t sizes[SHARED];
	for (size_t i = 0; i < SHARED; i++)
		sizes[i] = i % 3 == 0 ? 1000 + 100 * i : i % 3 == 1 ? (3 + i) * MIB : (16 + 3 * i) * MIB;
	for (int round = 0; round < 3; round++) {
		CHECK(shared_round(sizes, SHARED) == SHARED);
		void *p = gm_try_malloc(sizes[1], 0, NULL);
		if (round == 0)
			odd(p);
		gm_free(p, 0, 0, NULL);
	}
}

/* fault sets a fault, or ends it, and returns how many there were. */
static unsigned long fault(bool there, const char *call, unsigned long position, bool onwards, CUresult error)
{
	char text[40];
	tolerant = position > 0;
	if (!there) {
		fake_fault_at(call, position, onwards, error);
		return fake_fault_count();
	}
	fprintf(to, "!%s %lu %d %d\n", call, position, onwards, error);
	fflush(to);
	CHECK(fgets(text, sizeof text, from));
	return strtoul(text, NULL, 10);
}

static char now[100]; /* the fault that is tried */

static void where(void) { fprintf(stderr, "%s%s", *now ? "at " : "", now); }

static void faults(bool there, char **calls, int count)
{
	static const CUresult errors[] = {2, 1, 700, 999};
	static const size_t sizes[] = {1000, 3 * MIB, 34 * MIB, 9 * MIB};
	unsigned long all = 0;
	size_t initially, free, total;
	CHECK(shared_round(sizes, 4) == 4);
	gm_reset();
	OK(cuMemGetInfo_v2(&initially, &total));
	for (int call = 0; call < count; call++)
		for (int onwards = 0; onwards < 2; onwards++)
			for (unsigned long position = 1, hit = 1; hit; position++) {
				CUresult error = errors[(position + (unsigned)call) % 4];
				snprintf(now, sizeof now, "%s:%lu%s=%d\n", calls[call], position, onwards ? "+" : "", error);
				unsigned long before = fault(there, calls[call], position, onwards, error);
				shared_round(sizes, 4);
				hit = fault(there, calls[call], 0, 0, 0) - before;
				all += hit;
				gm_reset();
				gm_reset(); /* what failed the first time */
				struct gm_stats s = stats_of(0);
				CHECK(s.allocation[GM_ALL].current == 0 && s.reserved_bytes[GM_ALL].current == 0);
				OK(cuMemGetInfo_v2(&free, &total));
				CHECK(free == initially);
				CHECK(shared_round(sizes, 4) == 4);
			}
	*now = 0;
	printf("%lu\n", all);
}

int main(int argc, char **argv)
{
	alarm(60);
	if (argc > 1 && !strcmp(argv[1], "open"))
		return other();
	start(0);
	begin_other(argv[0]);
	atexit(where);
	if (argc > 1)
		faults(!strcmp(argv[1], "there"), argv + 2, argc - 2);
	else
		job();
	end_other();
	gm_reset();
	gm_reset();
	return 0;
}
