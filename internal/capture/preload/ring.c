#define _GNU_SOURCE
#include "ring.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "quiet.h"

#define NAP_NS 50000
#define LONG_NAP_NS 1000000 /* after NAPS short ones */
#define NAPS 200
#define PATIENCE 5000 /* long naps after which a reader that freed no slot counts as dead; a stopped process takes none */

#define SPARE (256ULL << 20) /* bytes of a folder in memory left free for others, such as NCCL and data loaders, which fail without */
#define TRIES 100

/* What a process knows of its ring; while it is being opened, the process that opens it, negative. */
enum state { UNKNOWN, ON, OFF };

static _Atomic int state;
static struct gm_header *header;
static struct gm_record *slots;
static __thread uint32_t thread_id __attribute__((tls_model("initial-exec")));

static uint64_t now_on(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

uint64_t gm_now(void)
{
	return now_on(CLOCK_MONOTONIC);
}

/* start_clocks reads both clocks at one moment: of several readings the one that took least. A thread may lose its core. */
static void start_clocks(struct gm_header *h)
{
	uint64_t least = UINT64_MAX;
	for (int i = 0; i < 10; i++) {
		uint64_t before = gm_now(), day = now_on(CLOCK_REALTIME), took = gm_now() - before;
		if (took >= least)
			continue;
		least = took;
		h->start_ns = day;
		h->start_mono_ns = before + took / 2;
	}
}

/* A process forked after CUDA began cannot use CUDA, and must not write into its parent's ring. In a child this page is wiped, so that
 * owned is 0. pthread_atfork does not work here: an auditor has a C library of its own, whose handlers the program's fork does not call. */
static int *owned;

static void keep_from_children(void)
{
	void *page = mmap(NULL, sizeof *owned, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED || madvise(page, sizeof *owned, MADV_WIPEONFORK) != 0)
		return;
	owned = page;
	*owned = 1;
}

/* is_child returns whether this process was forked from the one that opened the ring. */
static int is_child(void)
{
	if (__builtin_expect(owned != NULL, 1))
		return !*owned;
	return (uint32_t)getpid() != header->pid;
}

static int32_t number(const char *const *names)
{
	for (; *names; names++) {
		const char *text = getenv(*names);
		if (text && *text >= '0' && *text <= '9')
			return (int32_t)strtol(text, NULL, 10);
	}
	return -1;
}

static void describe(struct gm_header *h)
{
	static const char *const rank[] = {"RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID", NULL};
	static const char *const local[] = {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID", NULL};
	static const char *const world[] = {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS", NULL};

	h->magic = GM_MAGIC;
	h->version = GM_VERSION;
	h->records = GM_RECORDS;
	h->pid = (uint32_t)getpid();
	start_clocks(h);
	h->rank = number(rank);
	h->local_rank = number(local);
	h->world_size = number(world);
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		ssize_t n = read(fd, h->command, sizeof h->command - 1);
		h->command[n > 0 ? n : 0] = 0;
		close(fd);
	}
}

/* has_room returns whether a folder in memory has room for a ring. In a container it may be small. */
static int has_room(const char *folder)
{
	struct statvfs s;
	return statvfs(folder, &s) == 0 && (uint64_t)s.f_bavail * s.f_frsize >= SPARE;
}

/* allocate sets a file's size and allocates its blocks, so that a full disk is an error now and not a SIGBUS later. It retries after a
 * profiler's signals. */
static int allocate(int fd, size_t size)
{
	struct rlimit largest;
	int error = EINTR;
	if (getrlimit(RLIMIT_FSIZE, &largest) == 0 && largest.rlim_cur < size)
		return EFBIG; /* instead of SIGXFSZ */
	for (int i = 0; error == EINTR && i < TRIES; i++)
		error = posix_fallocate(fd, 0, (off_t)size);
	return error;
}

/* The names of files. They are static, since the stack may be small; only one thread uses them, once. */
static char path[PATH_MAX], whole[PATH_MAX];

/* put_name builds the name of a file of this process; it returns 0 if the name is too long. */
static int put_name(char name[PATH_MAX], const char *folder, const char *kind, uint64_t number)
{
	int n = snprintf(name, PATH_MAX, "%s/%s.%d.%llu", folder, kind, getpid(), (unsigned long long)number);
	return n > 0 && n < PATH_MAX;
}

/* map creates and maps the file; it returns -1 if that fails. */
static int map(const char *folder)
{
	uint64_t now = gm_now();
	if (!put_name(path, folder, "new", now) || !put_name(whole, folder, "ring", now))
		return -1;
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -1;
	size_t size = GM_HEADER + GM_RECORDS * sizeof(struct gm_record);
	void *at = MAP_FAILED;
	if (allocate(fd, size) == 0)
		at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
	close(fd);
	if (at == MAP_FAILED) {
		unlink(path);
		return -1;
	}
	header = at;
	slots = (struct gm_record *)((char *)at + GM_HEADER);
	describe(header);
	return rename(path, whole);
}

/* The folders of rings, read from the environment at the program's start, since the program may clear its environment. */
static const char *const variables[] = {"GMTRACE_RINGS", "GMTRACE_DIR"};
static char folders[2][PATH_MAX];

__attribute__((constructor)) static void remember_folders(void)
{
	for (int i = 0; i < 2; i++) {
		const char *folder = getenv(variables[i]);
		if (folder && !folders[i][0] && strlen(folder) < sizeof folders[i])
			strcpy(folders[i], folder);
	}
}

static int start(void)
{
	int next = OFF;
	remember_folders(); /* this call may come from a constructor that runs before the one above */
	for (int i = 0; next == OFF && i < 2; i++)
		if (folders[i][0] && (i > 0 || has_room(folders[i])) && map(folders[i]) == 0)
			next = ON;
	if (next == OFF && folders[1][0] && put_name(path, folders[1], "noring", gm_now()))
		(void)!syscall(SYS_mknodat, AT_FDCWD, path, S_IFREG | 0600, 0); /* tells gmtrace that there is no ring; it needs no descriptor */
	keep_from_children();
	return next;
}

int gm_on(void)
{
	int now = atomic_load_explicit(&state, memory_order_acquire);
	if (__builtin_expect(now == ON, 1))
		return !is_child();
	GM_QUIETLY;
	while (now != ON && now != OFF) {
		int expected = UNKNOWN, self = -(int)getpid();
		if (atomic_compare_exchange_strong(&state, &expected, self))
			atomic_store_explicit(&state, start(), memory_order_release);
		else if (expected < 0 && expected != self)
			return 0; /* forked while another thread of the parent was opening it */
		else
			nanosleep(&(struct timespec){0, NAP_NS}, NULL);
		now = atomic_load_explicit(&state, memory_order_acquire);
	}
	return now == ON;
}

/* wait_for_room waits until n slots at position are free; it returns 0 if the reader is gone. */
static int wait_for_room(uint64_t position, unsigned n)
{
	uint64_t tail = atomic_load_explicit(&header->tail, memory_order_acquire);
	if (__builtin_expect(position + n - tail <= GM_RECORDS, 1))
		return 1;
	uint64_t began = gm_now();
	for (int naps = 0; position + n - tail > GM_RECORDS && !atomic_load(&header->closed); naps++) {
		struct timespec nap = {0, naps < NAPS ? NAP_NS : LONG_NAP_NS};
		nanosleep(&nap, NULL);
		uint64_t seen = atomic_load_explicit(&header->tail, memory_order_acquire);
		if (seen != tail)
			naps = 0;
		tail = seen;
		if (naps > NAPS + PATIENCE)
			atomic_store(&header->closed, 1);
	}
	uint64_t waited = gm_now() - began;
	atomic_fetch_add(&header->waits, 1);
	atomic_fetch_add(&header->waited_ns, waited);
	return position + n - tail <= GM_RECORDS;
}

void gm_push(struct gm_record *r, const void *text, unsigned n)
{
	if (atomic_load_explicit(&header->closed, memory_order_relaxed)) {
		atomic_fetch_add(&header->lost, 1);
		return;
	}
	if (!thread_id)
		thread_id = (uint32_t)syscall(SYS_gettid);
	r->thread = thread_id;
	r->time_ns = gm_now();
	r->extra = (uint8_t)((n + GM_SLOT_BYTES - 1) / GM_SLOT_BYTES);
	uint64_t at = atomic_fetch_add_explicit(&header->head, 1 + (uint64_t)r->extra, memory_order_relaxed);
	if (!wait_for_room(at, 1 + r->extra)) {
		atomic_fetch_add(&header->lost, 1);
		atomic_fetch_add(&header->given_up, 1 + (uint64_t)r->extra);
		return;
	}
	for (unsigned i = 0; i < r->extra; i++) {
		struct gm_extra *e = (struct gm_extra *)&slots[(at + 1 + i) % GM_RECORDS];
		unsigned from = i * GM_SLOT_BYTES, left = n - from;
		memset(e->bytes, 0, GM_SLOT_BYTES);
		memcpy(e->bytes, (const char *)text + from, left < GM_SLOT_BYTES ? left : GM_SLOT_BYTES);
		atomic_store_explicit(&e->seq, (at + 2 + i) | GM_EXTRA, memory_order_release);
	}
	struct gm_record *slot = &slots[at % GM_RECORDS];
	memcpy((char *)slot + sizeof slot->seq, (char *)r + sizeof r->seq, sizeof *r - sizeof r->seq);
	atomic_store_explicit(&slot->seq, at + 1, memory_order_release);
}
