/* SPDX-License-Identifier: Apache-2.0
 *
 * Hostile objects of one kind through everything that reads objects: both webhooks, conversion, the
 * commands validate and audit, and the reconciler.
 *
 *   hostile KIND                       all objects of today's seed
 *   hostile KIND --object N            one object; N-M: those from N to M
 *   STEWARD_HOSTILE_SEED=20260131      another seed
 *
 * When a sanitizer or a check ends it, the last line is the command for the object. */
#include "base/log.h"
#include "base/util.h"
#include "base/yaml/yaml.h"
#include "hostile/admission.h"
#include "hostile/cases.h"
#include "hostile/commands.h"
#include "hostile/runs.h"
#include "hostile/surroundings.h"
#include "kinds/kinds.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#define OBJECTS 20000    /* at least */
#define PAIRS_LEAST 4000 /* of them */
#define FILE_MAX ((size_t)1 << 20)
#define CPU_MAX_MS 5000 /* of one object, through everything, with sanitizers */
#define BATCH 250

/* Of <sanitizer/common_interface_defs.h>, which not every compiler's packages have. */
void __sanitizer_set_report_fd(void *fd);

/* Shared with the parent, which survives every end of the process that runs the objects. */
static struct now {
    const char *kind;
    uint64_t seed;
    uint32_t first, last; /* of the objects that are run now */
    bool done;            /* all have been run */
} * now;

static uint64_t seed_of_today(void)
{
    const char *given = getenv("STEWARD_HOSTILE_SEED");
    struct tm tm;
    time_t t = time(NULL);
    if (given && *given)
        return strtoull(given, NULL, 10);
    (void)gmtime_r(&t, &tm);
    return (uint64_t)((tm.tm_year + 1900) * 10000 + (tm.tm_mon + 1) * 100 + tm.tm_mday);
}

/* --- files */

struct sample {
    const struct stw_kind *kind;
    struct stw_buf *out;
};

static int take_document(void *ctx, unsigned index, size_t line, const struct stw_buf *json)
{
    const struct sample *s = ctx;
    stw_autojson struct stw_json_doc doc = {0};
    (void)index, (void)line;
    if (stw_json_scan(&doc, stw_buf_str(json), json->len, NULL) != 0)
        return -1;
    if (!s->kind || stw_json_is(stw_json_get(stw_json_root(&doc), "kind"), s->kind->kind)) {
        stw_buf_clear(s->out);
        stw_buf_add(s->out, stw_buf_str(json), json->len);
    }
    return 0;
}

static void read_yaml(const char *path, const struct sample *s)
{
    struct stw_error err = {0};
    stw_autofree char *text = NULL;
    size_t len = 0;
    if (stw_read_file(path, FILE_MAX, &text, &len, &err) != 0 ||
        stw_yaml_each(path, text, len, take_document, (void *)(uintptr_t)s, &err) != 0)
        hostile_fail("%s: %s", path, err.text);
}

/* The object of the kind in config/samples. */
static void read_sample(const struct stw_kind *k, struct stw_buf *out)
{
    static const char folder[] = STW_SOURCE_ROOT "/config/samples";
    const struct sample s = {k, out};
    DIR *dir = opendir(folder);
    HOSTILE_EXPECT(dir);
    for (const struct dirent *e = readdir(dir); e; e = readdir(dir)) {
        char path[4096];
        stw_format(path, sizeof(path), "%s/%s", folder, e->d_name);
        if (strstr(e->d_name, ".yaml"))
            read_yaml(path, &s);
    }
    (void)closedir(dir);
    if (out->len == 0)
        hostile_fail("config/samples has no %s", k->kind);
}

/* --- */

static uint64_t cpu_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

struct job {
    const struct stw_kind *kind;
    struct hostile_cases *cases;
    struct hostile_runs *runs;
    struct hostile_commands *commands;
    struct hostile_tally tally;
    uint64_t slowest_ms;
    uint32_t slowest;
};

static void try_object(struct job *job, uint32_t number)
{
    stw_autobuf struct stw_buf object = STW_BUF_INIT((size_t)64 << 20);
    stw_autobuf struct stw_buf old = STW_BUF_INIT((size_t)64 << 20);
    struct hostile_random r = hostile_cases_random(job->cases, number);
    uint64_t begin = cpu_ms();
    now->first = now->last = number;
    /* an old object from those with two changes, which are small */
    hostile_case(job->cases, hostile_cases_single(job->cases) + hostile_below(&r, 1U << 20), &old);
    hostile_case(job->cases, number, &object);
    hostile_admit(job->kind, hostile_env(), &object, &old, &job->tally);
    hostile_convert(&object, number, &job->tally);
    hostile_run(job->runs, number, &object);
    uint64_t took = cpu_ms() - begin;
    if (took > job->slowest_ms) {
        job->slowest_ms = took;
        job->slowest = number;
    }
    if (took > CPU_MAX_MS)
        hostile_fail("took %llu ms", (unsigned long long)took);
    hostile_commands_add(job->commands, &object);
}

static void try_all(struct job *job, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        try_object(job, i);
        if ((i + 1 - from) % BATCH == 0 || i + 1 == to) {
            now->first = i - (i - from) % BATCH;
            now->last = i;
            hostile_commands_run(job->commands);
        }
    }
}

static int run_kind(const struct stw_kind *k, const char *object, const char *folder)
{
    stw_autobuf struct stw_buf sample = STW_BUF_INIT(FILE_MAX), pod = STW_BUF_INIT(FILE_MAX);
    const struct sample pod_template = {NULL, &pod};
    struct job job = {.kind = k};
    read_sample(k, &sample);
    read_yaml(STW_SOURCE_ROOT "/tests/hostile/pod.yaml", &pod_template);
    hostile_open();
    job.cases = hostile_cases_create(k, hostile_env(), &sample, &pod, now->seed);
    job.runs = hostile_runs_create(k, job.cases, read_sample);
    job.commands = hostile_commands_create(k, folder);
    uint32_t single = hostile_cases_single(job.cases);
    uint32_t from = 0, to = OBJECTS;
    if (object) {
        char *end;
        from = (uint32_t)strtoul(object, &end, 10);
        to = 1 + (*end == '-' ? (uint32_t)strtoul(end + 1, NULL, 10) : from);
    }
    try_all(&job, from, to);
    unsigned missed = object ? 0 : hostile_cases_missed(job.cases);
    (void)printf(
        "%s: seed %llu, objects %u to %u; those below %u have one of %u changes, the others two; "
        "%u are JSON, %u are valid; %u conversions; %u runs that sent requests; slowest "
        "%u: %llu ms\n",
        k->kind, (unsigned long long)now->seed, from, to - 1, single,
        hostile_cases_changes(job.cases), job.tally.read, job.tally.accepted, job.tally.converted,
        hostile_runs_whole(job.runs), job.slowest, (unsigned long long)job.slowest_ms);
    now->done = true;
    hostile_commands_destroy(job.commands);
    hostile_runs_destroy(job.runs);
    hostile_cases_destroy(job.cases);
    hostile_close();
    return missed > 0;
}

/* Runs the objects in a child. */
static int watch_kind(const struct stw_kind *k, const char *object)
{
    char folder[] = "/tmp/hostile-XXXXXX";
    int status = 0;
    if (!mkdtemp(folder))
        return 1;
    pid_t child = fork();
    if (child == 0) {
        hostile_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
        __sanitizer_set_report_fd((void *)(intptr_t)hostile_stderr);
        exit(run_kind(k, object, folder));
    }
    bool ended = child > 0 && waitpid(child, &status, 0) == child;
    hostile_commands_clean(folder, !now->done);
    if (!ended)
        return 1;
    if (!now->done)
        (void)fprintf(stderr, "run again: STEWARD_HOSTILE_SEED=%llu hostile %s --object %u-%u\n",
                      (unsigned long long)now->seed, now->kind, now->first, now->last);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv)
{
    const char *object = argc > 3 && stw_streq(argv[2], "--object") ? argv[3] : NULL;
    now = mmap(NULL, sizeof(*now), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (now == MAP_FAILED)
        return 1;
    *now = (struct now){.kind = argc > 1 ? argv[1] : "", .seed = seed_of_today()};
    stw_log_setup(STW_LOG_TEXT, STW_LOG_ERROR, STDERR_FILENO);
    for (const struct stw_kind *const *k = stw_kinds; *k; k++)
        if (stw_streq((*k)->singular, now->kind) && (argc == 2 || object))
            return watch_kind(*k, object);
    (void)fprintf(stderr, "Usage: %s KIND [--object NUMBER[-NUMBER]]\n", argv[0]);
    return 2;
}
