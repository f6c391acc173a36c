/* The file of counts, mapped by every process that uses it. */
#include "fake.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* counts_path replaces %p by the process id. */
static bool counts_path(char path[PATH_MAX])
{
	const char *text = getenv("GM_FAKE_COUNTS");
	if (!text || !*text)
		return false;
	const char *mark = strstr(text, "%p");
	int n = mark ? snprintf(path, PATH_MAX, "%.*s%d%s", (int)(mark - text), text, (int)getpid(), mark + 2)
	             : snprintf(path, PATH_MAX, "%s", text);
	return n > 0 && n < PATH_MAX;
}

static int counts_open(void)
{
	char path[PATH_MAX];
	if (!counts_path(path))
		return -1;
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0 || ftruncate(fd, FAKE_COUNTS_SIZE) != 0) {
		fprintf(stderr, "fake CUDA: GM_FAKE_COUNTS=%s: %s\n", path, strerror(errno));
		if (fd >= 0)
			close(fd);
		return -1;
	}
	return fd;
}

struct fake_counts *fake_counts_map(void)
{
	static struct fake_counts fallback;
	int fd = counts_open();
	if (fd < 0)
		return &fallback;
	struct fake_counts *counts = mmap(NULL, FAKE_COUNTS_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (counts == MAP_FAILED)
		return &fallback;
	counts->version = 1;
	counts->kinds = FAKE_KINDS;
	counts->devices = (uint32_t)fake_devices();
	counts->processes = FAKE_PROCESSES_MAX;
	memcpy(counts->magic, FAKE_COUNTS_MAGIC, sizeof counts->magic);
	return counts;
}

bool fake_process_lives(uint32_t pid)
{
	return kill((pid_t)pid, 0) == 0 || errno == EPERM;
}

uint64_t fake_used(struct fake_counts *counts, int device)
{
	uint64_t sum = 0;
	uint32_t self = (uint32_t)getpid();
	for (int i = 0; i < FAKE_PROCESSES_MAX; i++) {
		struct fake_process *p = &counts->process[i];
		uint32_t pid = p->pid;
		uint64_t used = pid ? p->used[device] : 0;
		if (used && (pid == self || fake_process_lives(pid)))
			sum += used;
	}
	return sum;
}
