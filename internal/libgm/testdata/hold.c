/* Holds bytes until its standard input ends. */
#include "check.h"

int main(int argc, char **argv)
{
	CHECK(argc == 2 && gm_try_malloc((size_t)atoll(argv[1]), 0, NULL));
	puts("held");
	fflush(stdout);
	getchar();
	return 0;
}
