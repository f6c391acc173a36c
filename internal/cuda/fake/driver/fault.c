/* Errors and delays that the environment requests:
 * GM_FAKE_FAIL="cuMemCreate:3=2,cuMemMap:1+=1", GM_FAKE_DELAY="cuMemMap=20us,cuMemAlloc=1ms", GM_FAKE_WORK="cuMemcpyDtoHAsync=2ms".
 * A name stands for all versions of a function. */
#include "driver.h"
#include "fake_fault.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RULES_MAX 64

struct rule {
	char name[64];
	bool fails;
	unsigned long first; /* the call that fails */
	bool onwards;        /* and all later ones */
	CUresult result;
	int64_t delay_ns;
	bool works; /* the delay applies to the work in a stream, not to the call */
	atomic_ulong calls;
};

static struct rule rules[RULES_MAX];
static int rule_count;
static pthread_once_t parsed = PTHREAD_ONCE_INIT;

static bool parse_fail(const char *text, struct rule *r)
{
	int result, end = 0;
	if (sscanf(text, "%63[^:]:%lu+=%d%n", r->name, &r->first, &result, &end) == 3 && !text[end])
		r->onwards = true;
	else if (sscanf(text, "%63[^:]:%lu=%d%n", r->name, &r->first, &result, &end) != 3 || text[end])
		return false;
	r->fails = true;
	r->result = (CUresult)result;
	return true;
}

static bool parse_delay(const char *text, struct rule *r)
{
	double amount;
	char unit[3];
	if (sscanf(text, "%63[^=]=%lf%2s", r->name, &amount, unit) != 3)
		return false;
	static const struct { const char *name; double ns; } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (!strcmp(unit, units[i].name)) {
			r->delay_ns = (int64_t)(amount * units[i].ns);
			return true;
		}
	return false;
}

static bool parse_work(const char *text, struct rule *r)
{
	r->works = true;
	return parse_delay(text, r);
}

/* parse reads a comma-separated variable. A malformed rule ends the program, so that a test cannot pass because of it. */
static void parse(const char *variable, bool (*one)(const char *, struct rule *))
{
	const char *value = getenv(variable);
	char *copy = value ? strdup(value) : NULL, *rest = NULL;
	for (char *text = copy ? strtok_r(copy, ",", &rest) : NULL; text; text = strtok_r(NULL, ",", &rest)) {
		if (rule_count == RULES_MAX || !one(text, &rules[rule_count])) {
			fprintf(stderr, "fake CUDA: %s: cannot read \"%s\"\n", variable, text);
			abort();
		}
		rule_count++;
	}
	free(copy);
}

static void parse_all(void)
{
	parse("GM_FAKE_FAIL", parse_fail);
	parse("GM_FAKE_DELAY", parse_delay);
	parse("GM_FAKE_WORK", parse_work);
}

/* names returns whether a rule's name is that of a function, with or without its version. */
static bool names(const char *rule, const char *function)
{
	size_t n = strlen(rule);
	if (strncmp(rule, function, n) != 0)
		return false;
	const char *rest = function + n;
	return !*rest || (rest[0] == '_' && rest[1] == 'v' && isdigit((unsigned char)rest[2])) || !strcmp(rest, "_ptds");
}

static int64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* Short delays spin, since a sleep takes about 50 us longer than requested. */
static void delay(int64_t ns)
{
	if (ns >= 1000000) {
		struct timespec t = {ns / 1000000000, ns % 1000000000};
		while (nanosleep(&t, &t) && errno == EINTR)
			;
		return;
	}
	for (int64_t end = now_ns() + ns; now_ns() < end;)
		;
}

static _Thread_local struct {
	uint64_t state;
	unsigned per_million;
	CUresult error;
} chance;
static const char *_Atomic chance_names;
static atomic_ulong failed;

void fake_fault_seed(uint64_t seed) { chance.state = seed * UINT64_C(0x9e3779b97f4a7c15) | 1; }

void fake_faults(unsigned per_million, CUresult error)
{
	chance.per_million = per_million;
	chance.error = error;
}

void fake_fault_names(const char *list) { chance_names = list; }

static struct rule requested; /* by fake_fault_at, while armed */
static atomic_bool armed;

void fake_fault_at(const char *name, unsigned long position, bool onwards, CUresult error)
{
	armed = false;
	if (!position)
		return;
	snprintf(requested.name, sizeof requested.name, "%s", name);
	requested.first = position;
	requested.onwards = onwards;
	requested.result = error;
	requested.calls = 0;
	armed = true;
}

unsigned long fake_fault_count(void) { return failed; }

/* listed returns whether a list of names contains that of a function. */
static bool listed(const char *list, const char *function)
{
	while (*list) {
		char name[64];
		size_t n = strcspn(list, ",");
		snprintf(name, sizeof name, "%.*s", (int)n, list);
		if (names(name, function))
			return true;
		list += n + (list[n] == ',');
	}
	return false;
}

/* drawn returns the error of a call that fails by chance (xorshift64). */
static CUresult drawn(const char *function)
{
	const char *list = chance_names;
	if (!chance.per_million || (list && !listed(list, function)))
		return CUDA_SUCCESS;
	chance.state ^= chance.state << 13;
	chance.state ^= chance.state >> 7;
	chance.state ^= chance.state << 17;
	if ((chance.state >> 11) % 1000000 >= chance.per_million)
		return CUDA_SUCCESS;
	failed++;
	return chance.error;
}

/* reached counts a call and returns whether it fails. */
static bool reached(struct rule *r)
{
	unsigned long call = ++r->calls;
	bool fails = call == r->first || (r->onwards && call > r->first);
	failed += fails;
	return fails;
}

CUresult fault_check(const char *function)
{
	pthread_once(&parsed, parse_all);
	CUresult result = drawn(function);
	for (int i = 0; i < rule_count; i++) {
		struct rule *r = &rules[i];
		if (r->works || !names(r->name, function))
			continue;
		if (r->delay_ns)
			delay(r->delay_ns);
		if (!r->fails)
			continue;
		if (reached(r))
			result = r->result;
	}
	if (armed && names(requested.name, function) && reached(&requested))
		result = requested.result;
	return result;
}

void fault_work(const char *function)
{
	pthread_once(&parsed, parse_all);
	for (int i = 0; i < rule_count; i++)
		if (rules[i].works && names(rules[i].name, function))
			delay(rules[i].delay_ns);
}
