/* Functions and places in programs, by number. */
#include "races.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SITES (1u << 20)

static char *names[SITES]; /* a hash table with open addresses; 0 is no site */

static uint32_t hash(const char *text)
{
	uint32_t h = 2166136261u;
	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * 16777619u;
	return h % (SITES - 1) + 1;
}

uint32_t site_of(const char *function, const char *mark)
{
	char name[1024];
	snprintf(name, sizeof name, "%s%s%s", function, mark && *mark ? " at " : "", mark ? mark : "");
	uint32_t at = hash(name);
	for (uint32_t tries = 0; tries < 100; tries++, at = at % (SITES - 1) + 1) {
		if (!names[at])
			names[at] = strdup(name);
		if (!names[at] || !strcmp(names[at], name))
			break;
	}
	return at;
}

const char *site_name(uint32_t site) { return names[site] ? names[site] : "?"; }
