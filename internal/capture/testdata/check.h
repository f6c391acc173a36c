/* CHECK ends a test program at a call that fails. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(call) \
	do { \
		int result_ = (int)(call); \
		if (result_) { \
			fprintf(stderr, "%s:%d: %s gives %d\n", __FILE__, __LINE__, #call, result_); \
			exit(9); \
		} \
	} while (0)

#endif
