/* The environment counts as it is when the first device is used. */
#include "check.h"

#include <unistd.h>

int main(void)
{
	usleep(200000); /* Go has started by then */
	setenv("GM_LIMIT", "104857600", 1);
	setenv("GM_LOG", "/dev/null", 1);
	CHECK(gm_try_malloc(50 * MIB, 0, NULL) && !gm_try_malloc(200 * MIB, 0, NULL));
	gm_free("", 1, 0, NULL); /* a line in the log */
	gm_reset();
	return 0;
}
