/* Stands in for the compiled half: logs the calls of its one function, which answers what GM_NATIVE_WHY says. */
#include <stdio.h>
#include <stdlib.h>

const char *gm_torch_install(const char *libgm)
{
	const char *log = getenv("GM_LOG");
	FILE *f = fopen(log ? log : "/dev/stderr", "a");
	if (f) {
		fprintf(f, "0 native %s\n", libgm);
		fclose(f);
	}
	return getenv("GM_NATIVE_WHY");
}
