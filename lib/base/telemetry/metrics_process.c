/* SPDX-License-Identifier: Apache-2.0
 *
 * The six process metrics that every Prometheus client library exports, read from /proc/self and
 * from the process's clock.  A gauge that cannot be read keeps its value. */
#include "base/metrics.h"
#include "base/util.h"

#include <assert.h>
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum process_metric { CPU, RSS, VIRTUAL, OPEN_FDS, MAX_FDS, START, PROCESS_METRICS };

static const struct {
    const char *name, *help;
    enum stw_metric_type type;
} rows[] = {
    [CPU] = {"process_cpu_seconds_total", "Total user and system CPU time spent in seconds.",
             STW_COUNTER},
    [RSS] = {"process_resident_memory_bytes", "Resident memory size in bytes.", STW_GAUGE},
    [VIRTUAL] = {"process_virtual_memory_bytes", "Virtual memory size in bytes.", STW_GAUGE},
    [OPEN_FDS] = {"process_open_fds", "Number of open file descriptors.", STW_GAUGE},
    [MAX_FDS] = {"process_max_fds", "Maximum number of open file descriptors.", STW_GAUGE},
    [START] = {"process_start_time_seconds",
               "Start time of the process since unix epoch in seconds.", STW_GAUGE},
};
static_assert(STW_COUNT(rows) == PROCESS_METRICS, "one row for each metric");

static void set_process_metric(struct stw_metrics *m, enum process_metric i, double v)
{
    struct stw_family *f =
        stw_metrics_family(m, rows[i].type, rows[i].name, rows[i].help, NULL, NULL);
    stw_series_set(STW_SERIES0(f), v);
}

/* Reads the numbers after the command's name in /proc/self/stat.  The name may contain blanks and
 * brackets, so fields are counted from the last bracket.  proc(5) numbers its fields from 1, state
 * is 3. */
static int read_stat(double *fields, unsigned first, unsigned last)
{
    stw_autofree char *text = NULL;
    if (stw_read_file("/proc/self/stat", 4096, &text, NULL, NULL) != 0)
        return -1;
    const char *p = strrchr(text, ')');
    for (unsigned i = 2; p && i < last; i++) {
        p = strchr(p + 1, ' ');
        if (p && i + 1 >= first)
            fields[i + 1] = strtod(p + 1, NULL);
    }
    return p ? 0 : -1;
}

static double boot_time(void)
{
    stw_autofree char *text = NULL;
    if (stw_read_file("/proc/stat", 1UL << 20, &text, NULL, NULL) != 0)
        return 0;
    const char *line = strstr(text, "\nbtime ");
    return line ? strtod(line + 7, NULL) : 0;
}

/* Uses nanoseconds: the file counts in ticks, which stay 0 in a small process for some time. */
static void collect_cpu(struct stw_metrics *m)
{
    struct timespec used;
    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used) == 0)
        set_process_metric(m, CPU, (double)used.tv_sec + (double)used.tv_nsec / 1e9);
}

static void collect_stat(struct stw_metrics *m)
{
    double f[25] = {0}, ticks = (double)getauxval(AT_CLKTCK);
    if (read_stat(f, 22, 24) != 0)
        return;
    set_process_metric(m, START, boot_time() + f[22] / ticks);
    set_process_metric(m, VIRTUAL, f[23]);
    set_process_metric(m, RSS, f[24] * (double)getauxval(AT_PAGESZ));
}

static void collect_fds(struct stw_metrics *m)
{
    struct rlimit limit;
    DIR *dir = opendir("/proc/self/fd");
    unsigned count = 0;

    if (dir) {
        /* readdir on a private stream is thread-safe with glibc and musl. */
        for (struct dirent *e; (e = readdir(dir));) // NOLINT(concurrency-mt-unsafe)
            count += e->d_name[0] != '.';
        (void)closedir(dir);
        set_process_metric(m, OPEN_FDS, count - 1.0); /* without the descriptor of `dir` */
    }
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
        set_process_metric(m, MAX_FDS,
                           limit.rlim_cur == RLIM_INFINITY ? INFINITY : (double)limit.rlim_cur);
}

static void collect_process_metrics(void *ctx)
{
    collect_cpu(ctx);
    collect_stat(ctx);
    collect_fds(ctx);
}

void stw_metrics_add_process(struct stw_metrics *m)
{
    (void)stw_metrics_on_collect(m, collect_process_metrics, m);
}
