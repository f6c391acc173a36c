/* What this library does for itself is not to be noticed: a thread is not cancelled in it, which would leave locks held and slots unfinished,
 * or lose what the driver has just given, and errno stays. Calls of the program's own to the driver are made outside of it, and may be
 * cancelled as ever. */
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

/* GM_QUIETLY holds up to the end of the block that it stands in. */
#define GM_QUIETLY __attribute__((cleanup(gm_quiet_end), unused)) struct gm_quiet quiet_ = gm_quiet_begin()

#endif
