#define _GNU_SOURCE
#include "caller.h"

#include <execinfo.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ring.h"

#define MAX_RANGES 1024
#define NAP_NS 50000
#define PAGE 4096

/* The ranges of code reported to the reader, in order of their first call. There are few, since only callers are reported. */
struct range {
	uintptr_t from, to;
};

__thread uintptr_t gm_runtime_caller __attribute__((tls_model("initial-exec")));

static __thread struct range last __attribute__((tls_model("initial-exec")));
static struct range ranges[MAX_RANGES];
static _Atomic int known;
static atomic_flag adding = ATOMIC_FLAG_INIT; /* guards ranges, and the static buffers of find and make_known */
static int stacks;

/* mapping is a line of /proc/self/maps. */
struct mapping {
	struct range range;
	uintptr_t offset;
	char path[PATH_MAX];
};

/* parse reads "from-to perms offset device inode path". */
static int parse(const char *line, struct mapping *m)
{
	char *end;
	m->range.from = strtoul(line, &end, 16);
	m->range.to = strtoul(end + 1, &end, 16);
	if (*end != ' ' || strlen(end) < 6)
		return 0;
	m->offset = strtoul(end + 6, &end, 16);
	const char *path = strchr(end, '/');
	size_t n = path ? strlen(path) : 0;
	if (n >= sizeof m->path)
		n = sizeof m->path - 1;
	memcpy(m->path, path ? path : "", n);
	m->path[n] = 0;
	return 1;
}

/* find looks an address up in /proc/self/maps. Asking the loader would take its lock and could deadlock: the caller may hold a lock of
 * CUDA's for which another thread waits inside dlopen. The buffer is static, since the stack may be small. */
static int find(uintptr_t address, struct mapping *m)
{
	static char text[2 * PATH_MAX];
	size_t held = 0;
	int found = 0;
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	while (!found) {
		ssize_t n = read(fd, text + held, sizeof text - 1 - held);
		if (n <= 0)
			break;
		held += (size_t)n;
		text[held] = 0;
		char *line = text, *end;
		for (; !found && (end = strchr(line, '\n')); line = end + 1) {
			*end = 0;
			found = parse(line, m) && address >= m->range.from && address < m->range.to;
		}
		held = strlen(line);
		memmove(text, line, held + 1);
		if (held == sizeof text - 1)
			held = 0;
	}
	close(fd);
	return found;
}

static int inside(uintptr_t address, const struct range *r)
{
	return address >= r->from && address < r->to;
}

static int is_known(uintptr_t address)
{
	int n = atomic_load_explicit(&known, memory_order_acquire);
	for (int i = 0; i < n; i++)
		if (inside(address, &ranges[i])) {
			last = ranges[i];
			return 1;
		}
	return 0;
}

/* make_known reports the library that holds an address to the reader, once. */
static void make_known(uintptr_t address)
{
	if (inside(address, &last) || is_known(address))
		return;
	while (atomic_flag_test_and_set_explicit(&adding, memory_order_acquire))
		nanosleep(&(struct timespec){0, NAP_NS}, NULL); /* yielding is not enough if threads have priorities */
	int n = atomic_load(&known);
	if (!is_known(address) && n < MAX_RANGES) {
		static struct mapping m;
		if (!find(address, &m)) {
			m.range.from = address / PAGE * PAGE;
			m.range.to = m.range.from + PAGE;
			m.offset = 0;
			m.path[0] = 0;
		}
		struct gm_record r = {.kind = GM_LIBRARY, .device = -1, .a = m.range.from, .b = m.range.to, .c = m.offset};
		gm_push(&r, m.path, (unsigned)strlen(m.path));
		last = ranges[n] = m.range;
		atomic_store_explicit(&known, n + 1, memory_order_release);
	}
	atomic_flag_clear_explicit(&adding, memory_order_release);
}

uintptr_t gm_caller(void *direct)
{
	uintptr_t address = gm_runtime_caller ? gm_runtime_caller : (uintptr_t)direct;
	make_known(address);
	return address;
}

/* The first backtrace loads the unwinder. That must not happen while a lock of CUDA's is held. */
__attribute__((constructor)) static void prepare_stacks(void)
{
	const char *wanted = getenv("GMTRACE_NATIVE");
	void *frame;
	if (wanted && *wanted == '1')
		stacks = backtrace(&frame, 1) > 0;
}

int gm_stack(uintptr_t *frames, int max)
{
	if (!stacks)
		return 0;
	int n = backtrace((void **)frames, max);
	for (int i = 0; i < n; i++)
		make_known(frames[i]);
	return n;
}
