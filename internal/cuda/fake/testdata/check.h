/* Checks that end a test program with a line that says what was wrong. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

#define CHECK(condition)                                                               \
	do {                                                                           \
		if (!(condition)) {                                                    \
			fprintf(stderr, "%s:%d: not %s\n", __FILE__, __LINE__, #condition); \
			exit(1);                                                       \
		}                                                                      \
	} while (0)

#define GIVES(expected, call)                                                                                  \
	do {                                                                                                   \
		int got = (int)(call);                                                                         \
		if (got != (int)(expected)) {                                                                  \
			fprintf(stderr, "%s:%d: %s gives %d, not %d\n", __FILE__, __LINE__, #call, got, (int)(expected)); \
			exit(1);                                                                               \
		}                                                                                              \
	} while (0)

#define OK(call) GIVES(0, call)

#endif
