/* Vector clocks of streams and of the host, whose threads are taken for one. A kernel or a copy is a use of memory in its stream, and two
 * uses of which one writes are a race unless the later one's stream knows that the earlier one is done. */
#include "races.h"
#include "fake_races.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HOST 0
#define MOST_REPORTS 200
#define MOST_REFUSALS 20 /* while nothing is queued */

bool races_on;

static const char *path;
static uint64_t chance, latest, queued;
static struct clock host = {.at = {1}};
static struct clock *clocks[CLOCKS]; /* of streams, also of those that were destroyed: what they have to do goes on */
static struct {
	CUcontext ctx;
	int device;
	bool live, legacy, blocking;
} owners[CLOCKS];
static unsigned next = 1;
static _Thread_local char mark[512];

/* draw is xorshift64. */
static uint64_t draw(void)
{
	chance ^= chance << 13;
	chance ^= chance >> 7;
	chance ^= chance << 17;
	return chance >> 11;
}

__attribute__((constructor)) static void begin(void)
{
	const char *seed = getenv("GM_FAKE_RACES_SEED");
	path = getenv("GM_FAKE_RACES");
	races_on = path && *path;
	chance = strtoull(seed && *seed ? seed : "1", NULL, 10) * UINT64_C(0x9e3779b97f4a7c15) | 1;
	for (const char *at = path; at && *at && !(seed && *seed); at++) /* tests have files of their own */
		chance = (chance ^ (unsigned char)*at) * UINT64_C(0x100000001b3) | 1;
	for (int i = 0; i < 10; i++)
		draw();
	static const uint64_t most[] = {1, 30, 300, 3000};
	latest = most[draw() % 4];
}

static void join(struct clock *c, const struct clock *other)
{
	for (int i = 0; i < CLOCKS; i++)
		if (other->at[i] > c->at[i])
			c->at[i] = other->at[i];
}

/* races_open: a stream that is made anew is another one than the stream whose place it has, as long as there are clocks. */
void races_open(CUstream s)
{
	if (!races_on)
		return;
	for (unsigned tries = 1; tries < CLOCKS && owners[next].live; tries++)
		next = next % (CLOCKS - 1) + 1;
	if (!clocks[next])
		clocks[next] = calloc(1, sizeof **clocks);
	if (!clocks[next])
		abort();
	s->clock = next;
	owners[next].live = true;
	owners[next].ctx = NULL; /* until it has something to do */
	next = next % (CLOCKS - 1) + 1;
}

void races_close(CUstream s)
{
	if (races_on)
		owners[s->clock].live = false;
}

/* ordered: the legacy stream and blocking streams wait for each other. */
static bool ordered(unsigned a, unsigned b)
{
	return a != b && owners[a].ctx == owners[b].ctx && ((owners[a].legacy && owners[b].blocking) || (owners[a].blocking && owners[b].legacy));
}

/* step begins a stream's next operation. */
static struct clock *step(CUstream s)
{
	struct clock *c = clocks[s->clock];
	owners[s->clock].ctx = s->ctx;
	owners[s->clock].device = s->ctx->device;
	owners[s->clock].legacy = s->legacy;
	owners[s->clock].blocking = !s->legacy && !(s->flags & CU_STREAM_NON_BLOCKING);
	join(c, &host);
	for (unsigned i = 1; i < CLOCKS; i++)
		if (ordered(s->clock, i))
			join(c, clocks[i]);
	c->at[s->clock]++;
	queued++;
	return c;
}

static struct { uint32_t before, now; } reported[MOST_REPORTS];
static unsigned reports;

static bool new_pair(uint32_t before, uint32_t now)
{
	for (unsigned i = 0; i < reports; i++)
		if (reported[i].before == before && reported[i].now == now)
			return false;
	if (reports == MOST_REPORTS)
		return false;
	reported[reports].before = before;
	reported[reports++].now = now;
	return true;
}

static void report(const struct use *before, bool wrote, const struct access *now, uint64_t address, uint64_t size)
{
	char text[4096];
	if (!new_pair(before->site, now->use.site))
		return;
	int n = snprintf(text, sizeof text, "race: %d bytes at %#llx: %s of %u, %s\n    does not follow %s of %u, %s\n", (int)size,
	                 (unsigned long long)address, now->ends ? "end" : now->write ? "write" : "read", now->use.clock,
	                 site_name(now->use.site), wrote ? "write" : "read", before->clock, site_name(before->site));
	int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (file < 0 || write(file, text, (size_t)n) != n)
		abort();
	close(file);
}

static void unreported(const struct use *before, bool wrote, const struct access *now, uint64_t address, uint64_t size)
{
	(void)before, (void)wrote, (void)now, (void)address, (void)size;
}

static void use(uint64_t address, uint64_t size, struct access a)
{
	for (uint64_t part; size; address += part, size -= part) {
		uint64_t at = memory_at(address, size, &part);
		shadow_access(at, part, &a, report);
		if (at != address) /* for its end: what comes by another mapping is none of this one's */
			shadow_access(address, part, &a, unreported);
	}
}

static struct access by_stream(CUstream s, const struct clock *c, bool write, const char *function)
{
	return (struct access){.use = {c->at[s->clock], s->clock, site_of(function, mark)}, .known = c, .write = write};
}

static void copied(CUstream s, const struct clock *c, const struct op *op)
{
	struct access reads = by_stream(s, c, false, entered), writes = by_stream(s, c, true, entered);
	for (uint64_t i = 0; i < op->copy.rows; i++)
		use(op->copy.src + i * op->copy.pitch, op->copy.size, reads);
	use(op->copy.dst, op->copy.rows * op->copy.size, writes);
}

static struct clock *copy_of(const struct clock *c)
{
	struct clock *copy = malloc(sizeof *copy);
	if (!copy)
		abort();
	*copy = *c;
	return copy;
}

void races_op(CUstream s, const struct op *op)
{
	if (!races_on)
		return;
	const struct clock *c = step(s);
	switch (op->kind) {
	case OP_COPY:
		copied(s, c, op);
		break;
	case OP_SET8:
	case OP_SET32:
		use(op->set.dst, op->set.count * (op->kind == OP_SET32 ? 4 : 1), by_stream(s, c, true, entered));
		break;
	case OP_FREE:
		use(op->block->range.key, op->block->range.size, by_stream(s, c, true, entered));
		break;
	case OP_RECORD:
		op->record->clock = copy_of(c);
		op->record->stream = s->clock;
		op->record->late = queued + draw() % latest;
		break;
	default:
		break;
	}
}

void races_wait(CUstream s, const struct record *record)
{
	if (races_on && record && record->clock)
		join(clocks[s->clock], record->clock);
}

void races_know(const struct record *record)
{
	if (races_on && record && record->clock)
		join(&host, record->clock);
}

/* races_refuse: what the host has not waited for might run still on a device, also when it does not here. */
bool races_refuse(struct record *record)
{
	if (!races_on || !record || !record->clock || record->clock->at[record->stream] <= host.at[record->stream] || queued >= record->late)
		return false;
	record->refusals = record->asked == queued ? record->refusals + 1 : 0;
	record->asked = queued;
	return record->refusals < MOST_REFUSALS;
}

bool races_refuse_stream(CUstream s)
{
	return races_on && clocks[s->clock]->at[s->clock] > host.at[s->clock] && draw() % 2;
}

void races_sync(CUstream s)
{
	if (!races_on)
		return;
	join(&host, clocks[s->clock]);
	for (unsigned i = 1; s->legacy && i < CLOCKS; i++)
		if (ordered(s->clock, i))
			join(&host, clocks[i]);
}

void races_sync_context(CUcontext ctx)
{
	for (unsigned i = 1; races_on && i < CLOCKS; i++)
		if (owners[i].ctx == ctx)
			join(&host, clocks[i]);
}

void races_sync_device(int device)
{
	for (unsigned i = 1; races_on && i < CLOCKS; i++)
		if (owners[i].ctx && owners[i].device == device)
			join(&host, clocks[i]);
}

static struct access by_host(bool write, const char *what)
{
	return (struct access){.use = {++host.at[HOST], HOST, site_of(what, mark)}, .known = &host, .write = write};
}

void races_host(uint64_t address, uint64_t size, bool write, const char *what)
{
	if (races_on)
		use(address, size, by_host(write, what));
}

void races_end(uint64_t address, uint64_t size, const char *what)
{
	if (!races_on)
		return;
	struct access a = by_host(true, what);
	a.ends = true;
	shadow_access(address, size, &a, report);
	shadow_forget(address, size);
}

void races_forget(uint64_t address, uint64_t size)
{
	if (races_on)
		shadow_forget(address, size);
}

void fake_touch(CUstream stream, CUdeviceptr address, size_t size, bool write, const char *where)
{
	CUstream s;
	lock();
	if (races_on && context_current() && stream_find(stream, &s) == CUDA_SUCCESS && s->capture.status == CU_STREAM_CAPTURE_STATUS_NONE) {
		const struct clock *c = step(s);
		use(address, size, (struct access){.use = {c->at[s->clock], s->clock, site_of("kernel", where)}, .known = c, .write = write});
	}
	unlock();
}

void fake_host_touch(const void *p, size_t size, bool write, const char *where)
{
	lock();
	if (races_on)
		use((uintptr_t)p, size, (struct access){.use = {++host.at[HOST], HOST, site_of("host", where)}, .known = &host, .write = write});
	unlock();
}

void fake_forget(const void *p, size_t size)
{
	lock();
	races_forget((uintptr_t)p, size);
	unlock();
}

void fake_drain(CUstream stream)
{
	CUstream s;
	lock();
	if (context_current() && stream_find(stream, &s) == CUDA_SUCCESS)
		stream_drain(s);
	unlock();
}

void fake_mark(const char *where) { snprintf(mark, sizeof mark, "%s", where ? where : ""); }
