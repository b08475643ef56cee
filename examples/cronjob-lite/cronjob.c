/* SPDX-License-Identifier: Apache-2.0
 *
 * CronJob: creates a Job at each instant of a schedule.  This is the kind of the tutorial in
 * kubebuilder's book, with the same fields and the same rules.  Read it from top to bottom:
 *
 *     1. the type         the fields of spec and status as tables: schema, defaults, simple checks
 *     2. an old version   v1alpha1: which fields it has, and how its objects become those of v1
 *     3. admission        the rules that a table cannot state
 *     4. the Jobs         which of their members are cached, and who is woken when they change
 *     5. the reconcile    look at the Jobs, start the one that is due, report, clean up
 *     6. the controller   one struct that connects all of it
 *
 * The reconcile gets a key, never an event.  It finds out by itself what has happened, so each run
 * can be repeated.  The name of a Job contains its instant: the API server refuses to create it
 * twice, even if the answer to the first attempt was lost. */
#include <steward/client.h>
#include <steward/controller.h>
#include <steward/kind.h>
#include <steward/operator.h>

#define SCHEDULED_AT "batch.tutorial.example.org/scheduled-at"
#define JOBS_MAX 300      /* of one CronJob; more are not read */
#define ACTIVE_MAX 50     /* no Job is started beside that many */
#define LOOK_MS 30000     /* at least this often: the clock may have been set */
#define FOREIGN_MS 60000u /* another check for a name that is taken */

/* --- 1. the type */

struct cronjob {
    const char *schedule, *concurrency;
    int64_t deadline, succeeded_limit, failed_limit;
    bool suspend;
    struct stw_json template; /* as it is in the object; the API server checks it in each Job */
};

static const char *const policies[] = {"Allow", "Forbid", "Replace", NULL};

/* One row for each field.  The schema of the CRD, the checks, the defaults and the decoding of an
 * object into the struct all follow from it. */
#define ROW(name_, type_, member, ...)                                                             \
    {                                                                                              \
        .name = (name_), STW_FIELD(type_, struct cronjob, member), __VA_ARGS__                     \
    }
static const struct stw_field spec_fields[] = {
    ROW("schedule", STW_T_STRING, schedule, .required = true, STW_RANGE(1, STW_CRON_MAX),
        .help = "When Jobs are created, in the syntax of cron; times are in UTC."),
    ROW("startingDeadlineSeconds", STW_T_INT, deadline, STW_RANGE(1, 31536000),
        .help = "A Job that could not be created within this time is left out; absent: no limit."),
    ROW("concurrencyPolicy", STW_T_STRING, concurrency, .def = "\"Allow\"", .values = policies,
        .help = "What happens while an earlier Job runs: Allow both, Forbid the new one until the "
                "earlier one has ended, or Replace the earlier one."),
    ROW("suspend", STW_T_BOOL, suspend, .def = "false",
        .help = "Creates no Jobs; those that run go on."),
    ROW("jobTemplate", STW_T_RAW, template, .required = true,
        .help = "Labels, annotations and spec of the Jobs."),
    ROW("successfulJobsHistoryLimit", STW_T_INT, succeeded_limit, .def = "3", STW_RANGE(0, 100),
        .help = "How many Jobs that succeeded are kept."),
    ROW("failedJobsHistoryLimit", STW_T_INT, failed_limit, .def = "1", STW_RANGE(0, 100),
        .help = "How many Jobs that failed are kept."),
    {0},
};

static const struct stw_field reference_fields[] = {
    {.name = "name", .type = STW_T_STRING, .help = "Name of the Job."},
    {.name = "uid", .type = STW_T_STRING, .help = "Its uid."},
    {0}};
static const struct stw_field reference = {
    .name = "", .type = STW_T_OBJECT, .fields = reference_fields};
/* clang-format off */
static const struct stw_field status_fields[] = {
    {.name = "active", .type = STW_T_LIST, .help = "Jobs that have not ended.",
     .item = &reference, STW_RANGE(0, JOBS_MAX)},
    {.name = "lastScheduleTime", .type = STW_T_STRING, .help = "The instant of the last Job.",
     .format = "date-time"},
    {0},
};
/* clang-format on */
static const struct stw_column columns[] = {
    {.name = "Schedule", .type = "string", .json_path = ".spec.schedule"},
    {.name = "Suspend", .type = "boolean", .json_path = ".spec.suspend"},
    {.name = "Last", .type = "date", .json_path = ".status.lastScheduleTime"},
    STW_COLUMN_READY,
    STW_COLUMN_AGE,
    {0},
};

/* --- 2. an old version.  Objects written as v1alpha1 can be read as v1, and the reverse.  What only
 * one of the two has is kept in an annotation, so that nothing is lost.  Everything else in this
 * file sees v1 alone. */

#define PART(name_, help_)                                                                         \
    {                                                                                              \
        .name = (name_), .type = STW_T_STRING, .def = "\"*\"", STW_RANGE(1, STW_CRON_MAX),         \
        .help = help_                                                                              \
    }
static const struct stw_field alpha_schedule_fields[] = {
    PART("minute", "Minute of the hour."),   PART("hour", "Hour of the day, in UTC."),
    PART("dayOfMonth", "Day of the month."), PART("month", "Month of the year."),
    PART("dayOfWeek", "Day of the week."),   {0},
};
#undef ROW
#define ROW(name_, type_, ...)                                                                     \
    {                                                                                              \
        .name = (name_), .type = (type_), __VA_ARGS__                                              \
    }
static const struct stw_field alpha_spec_fields[] = {
    ROW("schedule", STW_T_OBJECT, .fields = alpha_schedule_fields,
        .help = "When Jobs are created: the five parts of cron's syntax."),
    ROW("startingDeadlineSeconds", STW_T_INT, STW_RANGE(1, 31536000),
        .help = "A Job that could not be created within this time is left out; absent: no limit."),
    ROW("concurrencyPolicy", STW_T_STRING, .def = "\"Allow\"", .values = policies,
        .help = "What happens while an earlier Job runs: Allow, Forbid or Replace."),
    ROW("paused", STW_T_BOOL, .def = "false", .help = "suspend of v1."),
    ROW("jobTemplate", STW_T_RAW, .required = true,
        .help = "Labels, annotations and spec of the Jobs."),
    ROW("successfulJobsHistoryLimit", STW_T_INT, .def = "3", STW_RANGE(0, 100),
        .help = "How many Jobs that succeeded are kept."),
    ROW("note", STW_T_STRING, STW_RANGE(0, 1024), .help = "Text for people; v1 has none."),
    {0},
};
static const struct stw_column alpha_columns[] = {
    {.name = "Paused", .type = "boolean", .json_path = ".spec.paused"},
    STW_COLUMN_READY,
    STW_COLUMN_AGE,
    {0},
};
static const struct stw_move alpha_moves[] = {{"spec.suspend", "spec.paused"}, {0}};

/* {"minute": "5", "hour": "*", ...} -> "5 * * * *" */
static void join_schedule(struct stw_json schedule, struct stw_conversion *c)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(8192), json = STW_BUF_INIT(65536);
    char part[STW_CRON_MAX + 1];
    if (stw_json_type(schedule) != STW_JSON_OBJECT)
        return;
    for (const struct stw_field *row = alpha_schedule_fields; row->name; row++) {
        struct stw_json value = stw_json_get(schedule, row->name);
        bool given = stw_json_strcpy(value, part, sizeof(part)) == 0 && *part;
        stw_buf_addf(&text, "%s%s", text.len ? " " : "", given ? part : "*");
    }
    stw_buf_json_strz(&json, stw_buf_str(&text));
    stw_conversion_drop(c, "spec.schedule");
    stw_conversion_set(c, "spec.schedule", stw_buf_str(&json), json.len);
}

/* The reverse, for five parts with one space between them.  Another text, such as "@daily", is kept
 * in the annotation. */
static void split_schedule(struct stw_json schedule, struct stw_conversion *c)
{
    stw_autobuf struct stw_buf json = STW_BUF_INIT(65536);
    char text[STW_CRON_MAX + 1], *part = text;
    if (stw_json_strcpy(schedule, text, sizeof(text)) != 0)
        return;
    for (const struct stw_field *row = alpha_schedule_fields; row->name; row++) {
        size_t len = strcspn(part, " ");
        bool last = !row[1].name;
        if (len == 0 || (part[len] == '\0') != last)
            return;
        stw_buf_addf(&json, "%c\"%s\":", json.len ? ',' : '{', row->name);
        stw_buf_json_str(&json, part, len);
        part += len + !last;
    }
    stw_buf_addc(&json, '}');
    stw_conversion_drop(c, "spec.schedule");
    stw_conversion_set(c, "spec.schedule", stw_buf_str(&json), json.len);
}

/* It must not fail: an object that cannot be converted makes whole lists unreadable. */
static int convert_cronjob(struct stw_json object, bool to_own, struct stw_conversion *c,
                           struct stw_error *err)
{
    (void)err;
    (to_own ? join_schedule : split_schedule)(stw_json_path(object, "spec.schedule"), c);
    return 0;
}

static const struct stw_kind_version versions[] = {
    {.name = "v1alpha1",
     .deprecated = "batch.tutorial.example.org/v1alpha1 CronJob is deprecated; use v1",
     .spec = alpha_spec_fields,
     .columns = alpha_columns,
     .moves = alpha_moves,
     .convert = convert_cronjob},
    {0},
};

/* --- 3. admission */

static void validate_cronjob(const struct stw_admission *a, const void *spec, const void *old_spec,
                             struct stw_findings *f)
{
    const struct cronjob *c = spec;
    struct stw_json schedule = stw_json_path(a->object, "spec.schedule");
    struct stw_cron cron;
    struct stw_error err = {0};
    (void)old_spec;
    if (c->schedule && *c->schedule && strlen(c->schedule) <= STW_CRON_MAX) {
        if (stw_cron_parse(c->schedule, &cron, &err) != 0)
            stw_findings_at(f, "spec.schedule", STW_INVALID, schedule, "%s", err.text);
        else if (stw_cron_never(&cron))
            stw_findings_at(f, "spec.schedule", STW_INVALID, schedule, "never matches any date");
    }
    if (stw_json_there(c->template) && !stw_json_there(stw_json_get(c->template, "spec")))
        stw_findings_add(f, "spec.jobTemplate.spec", STW_REQUIRED, NULL, "%s", "");
}

const struct stw_kind stw_kind_cronjob = {
    .group = "batch.tutorial.example.org",
    .version = "v1",
    .kind = "CronJob",
    .plural = "cronjobs",
    .namespaced = true,
    .singular = "cronjob",
    .versions = versions,
    .help = "CronJob creates Jobs on a schedule.",
    .spec = spec_fields,
    .spec_size = sizeof(struct cronjob),
    .status = status_fields,
    .columns = columns,
    .operations = STW_CREATE | STW_UPDATE,
    .name_max = 52, /* a Job's name has at most 63 bytes, and 11 of them are "-" and the instant */
    .validate = validate_cronjob,
};

/* --- 4. the Jobs.  The cache keeps of each Job that a CronJob owns: what stw_dependent_project
 * writes, "at" (its instant) and "end" (the type of the condition that ended it). */

static const struct stw_resource res_job = {"batch", "v1", "Job", "jobs", true};
static const struct stw_naming naming = {.app = "cronjob-lite", .component = "job", .image = ""};

static void project_job(const struct stw_operator *op, struct stw_json job, struct stw_buf *out)
{
    char at[STW_TIME_LEN] = "";
    const char *end = NULL;
    struct stw_json none, c;
    if (!stw_dependent_project(op, job, out))
        return;
    struct stw_json notes = stw_json_path(job, "metadata.annotations");
    if (stw_json_strcpy(stw_json_get(notes, SCHEDULED_AT), at, sizeof(at)) == 0) {
        stw_buf_adds(out, ",\"at\":");
        stw_buf_json_strz(out, at);
    }
    stw_json_foreach (stw_json_path(job, "status.conditions"), none, c) {
        bool failed = stw_json_is(stw_json_get(c, "type"), "Failed");
        bool ended = failed || stw_json_is(stw_json_get(c, "type"), "Complete");
        if (ended && stw_json_is(stw_json_get(c, "status"), "True") && !end)
            end = failed ? "Failed" : "Complete";
    }
    if (end)
        stw_buf_addf(out, ",\"end\":\"%s\"", end);
    stw_buf_addc(out, '}');
}

static const struct stw_watch watch_jobs = {
    .resource = &res_job,
    .label_selector = "app.kubernetes.io/name=cronjob-lite",
    .project = project_job,
    .index = stw_dependent_index,
    .changed = stw_dependent_changed,
};

/* --- 5. the reconcile */

struct job {
    char name[254], uid[64], resource_version[STW_RV_LEN];
    int64_t at; /* its instant; 0: not known */
    bool ended, failed, gone;
};

struct cronjob_run { /* memory of one run; it begins with what every run has */
    STW_SUBJECT;
    struct cronjob spec;
    struct job jobs[JOBS_MAX + 1]; /* the latest first, then the one that this run creates */
    size_t count, active;
    int64_t now, last; /* last: the instant of the last Job, 0 for none; seconds */
    struct stw_aspect scheduled;
    struct stw_error err;
};

static int compare_jobs(const void *a, const void *b)
{
    const struct job *x = a, *y = b;
    return x->at != y->at ? (x->at < y->at) - (x->at > y->at) : strcmp(y->name, x->name);
}

/* Adds a Job of the cache, if there is one and this CronJob owns it. */
static bool read_job(struct cronjob_run *r, const char *key)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(64 * 1024);
    stw_autojson struct stw_json_doc doc = {0};
    char at[STW_TIME_LEN];
    struct job *j = &r->jobs[r->count];
    int64_t us;
    char rv[STW_RV_LEN] = "";
    if (stw_informer_get(stw_run_cache(r->run, &watch_jobs), key, &text, rv) != 0 ||
        stw_json_scan(&doc, stw_buf_str(&text), text.len, NULL) != 0)
        return false;
    struct stw_json root = stw_json_root(&doc), end = stw_json_get(root, "end");
    if (!stw_dependent_is_of(root, r->uid))
        return false;
    *j = (struct job){.ended = stw_json_there(end),
                      .failed = stw_json_is(end, "Failed"),
                      .gone = stw_json_bool(stw_json_get(root, "gone"), false)};
    stw_json_cut(stw_json_get(root, "name"), j->name, sizeof(j->name));
    stw_json_cut(stw_json_get(root, "uid"), j->uid, sizeof(j->uid));
    memcpy(j->resource_version, rv, sizeof(rv));
    stw_json_cut(stw_json_get(root, "at"), at, sizeof(at));
    j->at = stw_time_parse(at, &us) == 0 ? us / 1000000 : 0;
    r->active += !j->ended && !j->gone;
    if (j->at <= r->now) /* others can write the annotation, too */
        r->last = STW_MAX(r->last, j->at);
    r->count++;
    return true;
}

static void read_jobs(struct cronjob_run *r)
{
    stw_autobuf struct stw_buf keys = STW_BUF_INIT(1u << 20);
    const char *key;
    size_t at = 0;
    stw_dependent_keys(r->run, &watch_jobs, r->uid, &keys);
    while (r->count < JOBS_MAX && (key = stw_keys_next(&keys, &at)))
        (void)read_job(r, key);
    qsort(r->jobs, r->count, sizeof(*r->jobs), compare_jobs);
}

/* Deletes exactly this Job: not another one that got its name meanwhile. */
static int delete_job(struct cronjob_run *r, struct job *j, const char *why)
{
    char key[STW_KEY_LEN];
    if (stw_kube_delete(r->run->client, &res_job, r->run->ns, j->name, j->uid, NULL, &r->err) !=
        0) {
        if (r->err.code != STW_ERR_NOT_FOUND)
            return -1;
        r->err = (struct stw_error){0};
    }
    stw_key_make(r->run->ns, j->name, key);
    stw_informer_saw_delete(stw_run_cache(r->run, &watch_jobs), key, j->resource_version);
    stw_object_event(r->run, &r->object, false, "SuccessfulDelete", "Delete",
                     "deleted Job \"%s\": %s", j->name, why);
    j->gone = true;
    return 0;
}

/* Takes only labels, annotations and spec of the template: its author does not choose the Job's
 * name, namespace and owner. */
static json_t *make_job(const struct cronjob_run *r, int64_t instant, const char *name)
{
    char at[STW_TIME_LEN];
    json_auto_t *template = stw_manifest_tree(r->spec.template);
    const json_t *from = json_object_get(template, "metadata");
    json_t *metadata = stw_manifest_metadata(r->run, &r->owner, &naming, name);
    json_t *notes = json_deep_copy(json_object_get(from, "annotations"));
    (void)json_object_update_missing(json_object_get(metadata, "labels"),
                                     json_object_get(from, "labels"));
    notes = notes ? notes : json_object();
    stw_time_format(instant * 1000000, at);
    (void)json_object_set_new(notes, SCHEDULED_AT, json_string(at));
    (void)json_object_set_new(metadata, "annotations", notes);
    return stw_tree_pack("{s:s,s:s,s:o,s:O}", "apiVersion", "batch/v1", "kind", "Job", "metadata",
                         metadata, "spec", json_object_get(template, "spec"));
}

static void say(struct cronjob_run *r, enum stw_level level, enum stw_truth truth,
                const char *reason)
{
    r->scheduled.level = level;
    r->scheduled.truth = truth;
    r->scheduled.reason = reason;
}

static void create_job(struct cronjob_run *r, int64_t instant)
{
    stw_autobuf struct stw_buf answer = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    struct stw_aspect *a = &r->scheduled;
    char name[64], key[STW_KEY_LEN];
    stw_format(name, sizeof(name), "%.52s-%lld", r->run->name, (long long)instant);
    stw_key_make(r->run->ns, name, key);
    json_auto_t *job = make_job(r, instant, name);
    int rc = job ? stw_kube_create(r->run->client, &res_job, r->run->ns, job, &answer, &r->err)
                 : stw_fail_memory(&r->err);
    bool taken = rc != 0 && r->err.code == STW_ERR_EXISTS;
    if (taken) { /* by an earlier run, before a crash; or by another client */
        r->err = (struct stw_error){0};
        stw_buf_clear(&answer);
        rc = stw_kube_get(r->run->client, &res_job, r->run->ns, name, &answer, &r->err);
    }
    if (rc == 0) /* the cache need not wait for the watch */
        stw_informer_saw(stw_run_cache(r->run, &watch_jobs), &answer, NULL);
    if (rc == 0 && read_job(r, key)) {
        r->last = instant;
        if (!taken)
            stw_object_event(r->run, &r->object, false, "SuccessfulCreate", "Create",
                             "created Job \"%s\"", name);
    } else if (rc != 0) {
        stw_aspect_error(a, &r->err);
        STW_ASPECT_SAY(a, "Job \"%s\" could not be created: %s", name, r->err.text);
    } else {
        say(r, STW_LEVEL_WAITING, STW_FALSE, STW_REASON_NAME_CONFLICT);
        a->again_ms = FOREIGN_MS;
        STW_ASPECT_SAY(a, "Job \"%s\" exists and is not this CronJob's; it is not touched", name);
    }
}

static int replace_jobs(struct cronjob_run *r)
{
    for (size_t i = 0; i < r->count; i++)
        if (!r->jobs[i].ended && !r->jobs[i].gone && delete_job(r, &r->jobs[i], "replaced") != 0) {
            stw_aspect_error(&r->scheduled, &r->err);
            return -1;
        }
    return 0;
}

/* Starts the Job of the latest instant, unless it was started or a rule forbids it.  Earlier
 * instants that were missed are not made up for: their work would be the same. */
static void start_due_job(struct cronjob_run *r)
{
    struct stw_aspect *a = &r->scheduled;
    struct stw_cron cron;
    char text[STW_TIME_LEN];
    int64_t us, due = 0, next = 0;
    *a = (struct stw_aspect){.type = "Scheduled", .again_ms = LOOK_MS};
    int64_t since = stw_time_parse(r->object.created, &us) == 0 ? us / 1000000 : r->now;
    if (stw_cron_parse(r->spec.schedule, &cron, &r->err) != 0) { /* admission has checked it */
        stw_aspect_error(a, &r->err);
        return;
    }
    bool missed =
        stw_calendar_last(&cron, &stw_zone_utc, r->now, &due) == 0 && due > STW_MAX(since, r->last);
    if (stw_calendar_next(&cron, &stw_zone_utc, r->now, &next) == 0)
        a->again_ms = (uint64_t)STW_MIN((next - r->now) * 1000, (int64_t)LOOK_MS);
    stw_time_format((missed ? due : next) * 1000000, text);
    if (r->spec.suspend) {
        say(r, STW_LEVEL_FINE, STW_FALSE, "Suspended");
        STW_ASPECT_SAY(a, "no Jobs are created while spec.suspend is true");
    } else if (missed && r->spec.deadline > 0 && r->now - due > r->spec.deadline) {
        say(r, STW_LEVEL_FINE, STW_TRUE, "DeadlineMissed");
        STW_ASPECT_SAY(a, "the Job of %s was left out: startingDeadlineSeconds has passed", text);
    } else if (missed && r->active > 0 && stw_streq(r->spec.concurrency, "Forbid")) {
        say(r, STW_LEVEL_FINE, STW_TRUE, "JobActive");
        STW_ASPECT_SAY(a, "the Job of %s waits for the end of an earlier one", text);
    } else if (missed && stw_streq(r->spec.concurrency, "Allow") && r->active >= ACTIVE_MAX) {
        say(r, STW_LEVEL_STALLED, STW_FALSE, "TooManyActive");
        STW_ASPECT_SAY(a, "%zu Jobs have not ended", r->active);
    } else {
        say(r, STW_LEVEL_FINE, STW_TRUE, "Waiting");
        STW_ASPECT_SAY(a, missed ? "the last Job was created for %s" : "the next Job is due at %s",
                       text);
        if (missed && (!stw_streq(r->spec.concurrency, "Replace") || replace_jobs(r) == 0))
            create_job(r, due);
    }
}

static void report(struct cronjob_run *r, struct stw_result *result)
{
    char text[STW_TIME_LEN];
    json_t *active = json_array();
    for (size_t i = 0; i < r->count; i++)
        if (!r->jobs[i].ended && !r->jobs[i].gone)
            (void)json_array_append_new(
                active, json_pack("{s:s,s:s}", "name", r->jobs[i].name, "uid", r->jobs[i].uid));
    json_t *status = json_pack("{s:o}", "active", active);
    stw_time_format(r->last * 1000000, text);
    if (r->last > 0)
        (void)json_object_set_new(status, "lastScheduleTime", json_string(text));
    stw_run_report(r->run, &r->object, &r->scheduled, 1, status, result);
}

/* The status holds the last instant now, so the Jobs are not needed to know it. */
static void delete_old_jobs(struct cronjob_run *r, struct stw_result *result)
{
    int64_t left[] = {r->spec.succeeded_limit, r->spec.failed_limit};
    for (size_t i = 0; i < r->count; i++) {
        struct job *j = &r->jobs[i];
        if (j->ended && !j->gone && left[j->failed]-- <= 0 &&
            delete_job(r, j, "more than the history limit") != 0) {
            stw_run_fail(r->run, &r->err, result);
            return;
        }
    }
}

static void reconcile_cronjob(struct stw_subject *subject, struct stw_result *result)
{
    struct cronjob_run *r = (struct cronjob_run *)subject;
    r->now = stw_wall_us(r->run->clock) / 1000000;
    r->last = STW_MIN(stw_tree_time(r->object.status, "lastScheduleTime", 0), r->now);
    read_jobs(r);
    start_due_job(r);
    report(r, result);
    if (result->outcome == STW_RUN_DONE || result->outcome == STW_RUN_AFTER)
        delete_old_jobs(r, result);
}

/* --- 6. the controller.  Nothing is to be done when a CronJob is deleted: it owns its Jobs, so the
 * garbage collector deletes them. */

static const struct stw_watch *const watches[] = {&watch_jobs, NULL};
static const struct stw_rule rules[] = {
    {.resource = &res_job, .verbs = "get,list,watch,create,delete"},
    {0},
};
static const char *const conditions[] = {"Scheduled", NULL};

const struct stw_controller stw_controller_cronjob = {
    STW_CONTROLLER_OF("cronjob", stw_kind_cronjob),
    STW_OWN_WATCH(stw_kind_cronjob),
    .watches = watches,
    .rules = rules,
    .conditions = conditions,
    STW_RUN_STATE(struct cronjob_run, spec),
    .reconcile = reconcile_cronjob,
};
