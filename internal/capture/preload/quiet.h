/* The library's own work must not be noticed by the program: errno stays the same, and a thread is not cancelled during it, which would
 * leave locks held, slots unfinished or memory unrecorded. The program's own calls of the driver are made outside of such a section, and
 * can be cancelled as usual. */
#ifndef GM_QUIET_H
#define GM_QUIET_H

#include <errno.h>
#include <pthread.h>

struct gm_quiet {
	int cancel, error;
};

static inline struct gm_quiet gm_quiet_begin(void)
{
	struct gm_quiet q = {.error = errno};
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &q.cancel);
	return q;
}

static inline void gm_quiet_end(struct gm_quiet *q)
{
	pthread_setcancelstate(q->cancel, NULL);
	errno = q->error;
}

/* GM_QUIETLY begins such a section, which ends with the enclosing block. */
#define GM_QUIETLY __attribute__((cleanup(gm_quiet_end), unused)) struct gm_quiet quiet_ = gm_quiet_begin()

#endif
