/* The text of each thread's last failure. It is in no thread-local variable, as a Go library's must fit into the little room that is
 * left for those of libraries loaded late. */
#include "libgm.h"

#include <stdlib.h>
#include <string.h>

static pthread_key_t key;

__attribute__((constructor)) static void prepare(void) { pthread_key_create(&key, free); }

void gm_set_error(const char *text, size_t n)
{
	char *copy = malloc(n + 1);
	if (!copy)
		return;
	memcpy(copy, text, n);
	copy[n] = 0;
	free(pthread_getspecific(key));
	pthread_setspecific(key, copy);
}

const char *gm_error(void)
{
	const char *text = pthread_getspecific(key);
	return text ? text : "";
}

bool gm_refused(bool wrong, const char *text)
{
	if (wrong)
		gm_set_error(text, strlen(text));
	return wrong;
}
