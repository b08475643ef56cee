/* SPDX-License-Identifier: Apache-2.0
 *
 * The cron engine for tests that compare it with others.  Reads lines
 *     EXPRESSION <tab> TIME ZONE <tab> SECONDS SINCE THE EPOCH <tab> COUNT
 * and answers each with the next COUNT instants after that, or with "!" and the error.
 * With --time it prints only one line: the number of searches for the next instant, and their
 * average and worst time in nanoseconds. */
#include "base/tzfile.h"
#include "base/util.h"
#include "schema/calendar.h"
#include "schema/zones.h"

#include <stdio.h>
#include <time.h>

struct question {
    struct stw_cron cron;
    const struct stw_zone *zone;
    int64_t after, count;
};

static char *next_field(char **rest)
{
    return strsep(rest, "\t\n");
}

static int read_question(struct stw_zones *zones, char *line, struct question *q,
                         struct stw_error *err)
{
    char *rest = line;
    const char *text = next_field(&rest), *zone = next_field(&rest), *after = next_field(&rest),
               *count = next_field(&rest);
    if (!count || stw_parse_int(after, INT64_MIN, INT64_MAX, &q->after) != 0 ||
        stw_parse_int(count, 1, 1000, &q->count) != 0)
        return stw_fail(err, STW_ERR_INVALID, "not a question");
    q->zone = stw_zones_get(zones, zone);
    if (!q->zone)
        return stw_fail(err, STW_ERR_INVALID, "unknown time zone");
    return stw_cron_parse(text, &q->cron, err);
}

static void answer(struct question *q)
{
    for (int64_t i = 0; i < q->count; i++) {
        if (stw_calendar_next(&q->cron, q->zone, q->after, &q->after) != 0)
            break;
        printf("%s%lld", i ? " " : "", (long long)q->after);
    }
    printf("\n");
}

static uint64_t nanoseconds(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

struct times {
    uint64_t calls, total, worst;
};

/* The best of three, to exclude other load on the machine. */
static void take_time(const struct question *q, struct times *t)
{
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 3; i++) {
        int64_t next;
        uint64_t begin = nanoseconds();
        (void)stw_calendar_next(&q->cron, q->zone, q->after, &next);
        best = STW_MIN(best, nanoseconds() - begin);
    }
    t->calls++;
    t->total += best;
    t->worst = STW_MAX(t->worst, best);
}

int main(int argc, char **argv)
{
    struct stw_zones *zones = stw_zones_create(stw_tz_read);
    struct times t = {0};
    bool timed = argc > 1 && stw_streq(argv[1], "--time");
    char *line = NULL;
    size_t size = 0;
    while (getline(&line, &size, stdin) > 0) {
        struct question q;
        struct stw_error err = {0};
        int rc = read_question(zones, line, &q, &err);
        if (timed && rc == 0)
            take_time(&q, &t);
        else if (!timed && rc != 0)
            printf("!%s\n", err.text);
        else if (!timed)
            answer(&q);
        (void)fflush(stdout);
    }
    if (timed)
        printf("%llu %llu %llu\n", (unsigned long long)t.calls,
               (unsigned long long)(t.calls ? t.total / t.calls : 0), (unsigned long long)t.worst);
    free(line);
    stw_zones_destroy(zones);
    return 0;
}
