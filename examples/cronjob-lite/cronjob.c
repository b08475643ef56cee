/* SPDX-License-Identifier: Apache-2.0
 *
 * An operator with one kind, CronTask: Jobs on a schedule in UTC, as in the tutorial of kubebuilder's
 * book.  Each run computes everything from the Jobs that exist: it removes old ones, starts the one
 * that is due, and asks to be run again when the next one is. */
#include <steward/base.h>
#include <steward/client.h>
#include <steward/controller.h>
#include <steward/kind.h>
#include <steward/operator.h>

#define JOBS_MAX 256 /* of one CronTask */
#define SCHEDULED "batch.example.org/scheduled-at"
#define MANAGED_BY "cronjob-lite"

/* --- the kind */

struct task {
    const char *schedule, *image, *script, *concurrency;
    bool suspend;
    int64_t deadline_s, starting_deadline_s, successful_limit, failed_limit;
};

static const char *check_schedule(const char *text)
{
    struct stw_cron cron;
    struct stw_error err = {0};
    if (stw_cron_parse(text, &cron, &err) != 0)
        return "must be a schedule as in crontab, such as \"*/5 * * * *\"";
    return stw_cron_never(&cron) ? "is never due" : NULL;
}

static const char *const policies[] = {"Allow", "Forbid", "Replace", NULL};

#define AT(member) STW_FIELD_OFFSET(struct task, member)

static const struct stw_field spec[] = {
    {.name = "schedule",
     .type = STW_T_STRING,
     AT(schedule),
     .help = "When Jobs are started, as in crontab, in UTC.",
     .required = true,
     STW_RANGE(1, STW_CRON_MAX),
     .check = check_schedule},
    {.name = "image",
     .type = STW_T_STRING,
     AT(image),
     .help = "Image of the container.",
     .required = true,
     STW_RANGE(1, 1024),
     .check = stw_check_image},
    {.name = "script",
     .type = STW_T_STRING,
     AT(script),
     .help = "What /bin/sh runs.",
     .required = true,
     STW_RANGE(1, 4096)},
    {.name = "concurrencyPolicy",
     .type = STW_T_STRING,
     AT(concurrency),
     .help = "Whether a Job may start while another one runs.",
     .def = "\"Forbid\"",
     .values = policies},
    {.name = "suspend",
     .type = STW_T_BOOL,
     AT(suspend),
     .help = "Starts no more Jobs; those that run are not changed.",
     .def = "false"},
    {.name = "startingDeadlineSeconds",
     .type = STW_T_INT,
     AT(starting_deadline_s),
     .help = "A Job that is late by more seconds is not started.",
     .def = "600",
     STW_RANGE(10, 86400)},
    {.name = "activeDeadlineSeconds",
     .type = STW_T_INT,
     AT(deadline_s),
     .help = "A Job that runs for more seconds fails.",
     .def = "3600",
     STW_RANGE(1, 86400)},
    {.name = "successfulJobsHistoryLimit",
     .type = STW_T_INT,
     AT(successful_limit),
     .help = "How many successful Jobs are kept.",
     .def = "3",
     STW_RANGE(0, 50)},
    {.name = "failedJobsHistoryLimit",
     .type = STW_T_INT,
     AT(failed_limit),
     .help = "How many failed Jobs are kept.",
     .def = "1",
     STW_RANGE(0, 50)},
    {0},
};

static const struct stw_field status[] = {
    {.name = "active", .type = STW_T_INT, .format = "int64", .help = "Jobs that run."},
    {.name = "lastScheduleTime",
     .type = STW_T_STRING,
     .format = "date-time",
     .help = "When the latest Job was due."},
    {0},
};

static const struct stw_column columns[] = {
    {.name = "Schedule", .type = "string", .json_path = ".spec.schedule"},
    {.name = "Suspend", .type = "boolean", .json_path = ".spec.suspend"},
    {.name = "Active", .type = "integer", .json_path = ".status.active"},
    STW_COLUMN_AGE,
    {0},
};

static void warn_policy(const struct stw_admission *a, const void *spec_, const void *old,
                        struct stw_findings *f)
{
    const struct task *t = spec_;
    (void)a;
    (void)old;
    if (stw_streq(t->concurrency, "Forbid") && t->deadline_s > t->starting_deadline_s)
        stw_findings_warn(f,
                          "spec.activeDeadlineSeconds: a Job may run past the starting deadline of "
                          "the next one, which is then left out");
}

static const struct stw_kind kind = {
    .group = "batch.example.org",
    .version = "v1",
    .kind = "CronTask",
    .plural = "crontasks",
    .namespaced = true,
    .singular = "crontask",
    .help = "CronTask starts Jobs on a schedule.",
    .spec = spec,
    .spec_size = sizeof(struct task),
    .status = status,
    .columns = columns,
    .operations = STW_CREATE | STW_UPDATE,
    .name_max = 52, /* the names of its Jobs are longer by the minute */
    .validate = warn_policy,
};

/* --- its Jobs in the cache */

static const struct stw_resource job_resource = {
    .group = "batch", .version = "v1", .kind = "Job", .plural = "jobs", .namespaced = true};

static bool is_true(struct stw_json job, const char *type)
{
    struct stw_json key, one;
    stw_json_foreach (stw_json_path(job, "status.conditions"), key, one)
        if (stw_json_is(stw_json_get(one, "type"), type) &&
            stw_json_is(stw_json_get(one, "status"), "True"))
            return true;
    return false;
}

/* {"o":owner's name,"u":owner's uid,"s":instant,"f":"Complete"} */
static void project_job(const struct stw_controller *const *all, struct stw_json job,
                        struct stw_buf *out)
{
    char scheduled[32] = "0", name[254], uid[64], owner_kind[64];
    struct stw_json meta = stw_json_get(job, "metadata");
    (void)all;
    struct stw_json owner = stw_json_at(stw_json_get(meta, "ownerReferences"), 0);
    if (stw_json_strcpy(stw_json_get(owner, "kind"), owner_kind, sizeof(owner_kind)) != 0 ||
        !stw_streq(owner_kind, kind.kind) ||
        stw_json_strcpy(stw_json_get(owner, "name"), name, sizeof(name)) != 0 ||
        stw_json_strcpy(stw_json_get(owner, "uid"), uid, sizeof(uid)) != 0)
        return;
    (void)stw_json_strcpy(stw_json_get(stw_json_get(meta, "annotations"), SCHEDULED), scheduled,
                          sizeof(scheduled));
    stw_buf_adds(out, "{\"n\":");
    char ns[254] = "";
    (void)stw_json_strcpy(stw_json_get(meta, "namespace"), ns, sizeof(ns));
    stw_buf_json_strz(out, ns);
    stw_buf_adds(out, ",\"o\":");
    stw_buf_json_strz(out, name);
    stw_buf_adds(out, ",\"u\":");
    stw_buf_json_strz(out, uid);
    stw_buf_adds(out, ",\"s\":");
    stw_buf_json_strz(out, scheduled);
    stw_buf_addf(out, ",\"f\":\"%s\"}",
                 is_true(job, "Complete") ? "Complete"
                 : is_true(job, "Failed") ? "Failed"
                                          : "");
}

static bool owner_of(struct stw_json projected, char out[STW_KEY_LEN])
{
    char ns[254], name[254];
    if (stw_json_strcpy(stw_json_get(projected, "n"), ns, sizeof(ns)) != 0 ||
        stw_json_strcpy(stw_json_get(projected, "o"), name, sizeof(name)) != 0)
        return false;
    stw_key_make(ns, name, out);
    return true;
}

static void index_job(void *ctx, struct stw_json projected, struct stw_buf *out)
{
    char key[STW_KEY_LEN];
    (void)ctx;
    if (owner_of(projected, key))
        stw_index_add(out, "owner", key);
}

static void job_changed(struct stw_manager *m, const struct stw_watch *w, const char *key,
                        const char *old_text, const char *new_text)
{
    stw_autojson struct stw_json_doc doc = {0};
    const char *text = new_text ? new_text : old_text;
    char owner[STW_KEY_LEN];
    (void)w;
    (void)key;
    if (text && stw_json_scan(&doc, text, strlen(text), NULL) == 0 &&
        owner_of(stw_json_root(&doc), owner))
        stw_manager_enqueue(m, kind.kind, owner);
}

static const struct stw_watch jobs = {
    .resource = &job_resource,
    .label_selector = "app.kubernetes.io/managed-by=" MANAGED_BY,
    .project = project_job,
    .index = index_job,
    .changed = job_changed,
};

/* --- one run */

struct job {
    char name[254];
    int64_t scheduled;
    bool complete, failed;
};

struct task_run {
    STW_SUBJECT;
    struct task spec;
    struct stw_cron cron;
    int64_t now, last, next;
    struct job jobs[JOBS_MAX]; /* the newest first */
    size_t count, active;
    const char *blocked; /* why the Job that is due was not started */
};

static int newest_first(const void *a, const void *b)
{
    const struct job *x = a, *y = b;
    return x->scheduled < y->scheduled ? 1 : x->scheduled > y->scheduled ? -1 : 0;
}

static void take_job(struct task_run *r, const char *key, const char *text, size_t len)
{
    stw_autojson struct stw_json_doc doc = {0};
    const char *slash = strchr(key, '/');
    char instant[32] = "";
    if (r->count == JOBS_MAX || !slash || stw_json_scan(&doc, text, len, NULL) != 0)
        return;
    struct stw_json root = stw_json_root(&doc);
    if (!stw_json_is(stw_json_get(root, "u"), r->uid))
        return; /* of an object of this name that is gone */
    struct job *job = &r->jobs[r->count++];
    *job = (struct job){.complete = stw_json_is(stw_json_get(root, "f"), "Complete"),
                        .failed = stw_json_is(stw_json_get(root, "f"), "Failed")};
    stw_format(job->name, sizeof(job->name), "%s", slash + 1);
    (void)stw_json_strcpy(stw_json_get(root, "s"), instant, sizeof(instant));
    (void)stw_parse_int(instant, 0, INT64_MAX, &job->scheduled);
    r->active += !job->complete && !job->failed;
    r->last = STW_MAX(r->last, job->scheduled);
}

static void list_jobs(struct task_run *r)
{
    stw_autobuf struct stw_buf keys = STW_BUF_INIT(1u << 20);
    struct stw_informer *cache = stw_run_cache(r->run, &jobs);
    char index[STW_KEY_LEN + 8];
    size_t at = 0;
    stw_format(index, sizeof(index), "owner:%s", r->run->key);
    stw_informer_keys(cache, index, &keys);
    for (const char *key; (key = stw_keys_next(&keys, &at)) != NULL;) {
        stw_autobuf struct stw_buf text = STW_BUF_INIT(4096);
        if (stw_informer_get(cache, key, &text, NULL) == 0)
            take_job(r, key, stw_buf_str(&text), text.len);
    }
    qsort(r->jobs, r->count, sizeof(r->jobs[0]), newest_first);
}

static int delete_job(struct task_run *r, const struct job *job, struct stw_error *err)
{
    char key[STW_KEY_LEN];
    if (stw_kube_delete(r->run->client, &job_resource, r->run->ns, job->name, NULL, NULL, err) != 0)
        return err->code == STW_ERR_NOT_FOUND ? 0 : -1;
    stw_key_make(r->run->ns, job->name, key);
    stw_informer_saw_delete(stw_run_cache(r->run, &jobs), key);
    return 0;
}

static int remove_old_jobs(struct task_run *r, struct stw_error *err)
{
    int64_t complete = 0, failed = 0;
    for (size_t i = 0; i < r->count; i++) {
        const struct job *job = &r->jobs[i];
        bool old = (job->complete && ++complete > r->spec.successful_limit) ||
                   (job->failed && ++failed > r->spec.failed_limit);
        if (old && delete_job(r, job, err) != 0)
            return -1;
    }
    return 0;
}

static json_t *make_job(const struct task_run *r, const char *name, int64_t instant)
{
    return json_pack("{s:s,s:s,s:{s:s,s:s,s:{s:s,s:s},s:{s:o},s:[o]},"
                     "s:{s:i,s:I,s:{s:{s:s,s:[{s:s,s:s,s:[s,s,s]}]}}}}",
                     "apiVersion", "batch/v1", "kind", "Job", "metadata", "name", name, "namespace",
                     r->run->ns, "labels", "app.kubernetes.io/name", "crontask",
                     "app.kubernetes.io/managed-by", MANAGED_BY, "annotations", SCHEDULED,
                     json_sprintf("%lld", (long long)instant), "ownerReferences",
                     stw_owner_reference(&kind.resource, &r->owner), "spec", "backoffLimit", 0,
                     "activeDeadlineSeconds", (json_int_t)r->spec.deadline_s, "template", "spec",
                     "restartPolicy", "Never", "containers", "name", "task", "image", r->spec.image,
                     "command", "/bin/sh", "-c", r->spec.script);
}

/* The name follows from the instant: a Job cannot be started twice for one. */
static int start_job(struct task_run *r, int64_t instant, struct stw_error *err)
{
    stw_autobuf struct stw_buf made = STW_BUF_INIT(1u << 20);
    char name[64];
    stw_format(name, sizeof(name), "%s-%lld", r->run->name, (long long)(instant / 60));
    json_auto_t *job = make_job(r, name, instant);
    if (!job)
        return stw_fail(err, STW_ERR_INTERNAL, "out of memory");
    if (stw_kube_create(r->run->client, &job_resource, r->run->ns, job, &made, err) != 0) {
        if (err->code != STW_ERR_EXISTS)
            return -1;
    } else {
        stw_informer_saw(stw_run_cache(r->run, &jobs), &made, NULL);
        stw_object_event(r->run, &r->object, false, "Started", "Start", "started Job %s", name);
    }
    r->active++;
    r->last = instant;
    return 0;
}

static int start_due_job(struct task_run *r, struct stw_error *err)
{
    int64_t instant;
    if (r->spec.suspend || stw_calendar_last(&r->cron, &stw_zone_utc, r->now, &instant) != 0 ||
        instant <= r->last || r->now - instant > r->spec.starting_deadline_s)
        return 0;
    if (r->active > 0 && stw_streq(r->spec.concurrency, "Forbid")) {
        r->blocked = "a Job still runs";
        return 0;
    }
    for (size_t i = 0; r->active > 0 && i < r->count; i++) {
        const struct job *job = &r->jobs[i];
        if (!stw_streq(r->spec.concurrency, "Replace") || job->complete || job->failed)
            continue;
        if (delete_job(r, job, err) != 0)
            return -1;
        r->active--;
    }
    if (r->count == JOBS_MAX) {
        r->blocked = "too many Jobs exist";
        return 0;
    }
    return start_job(r, instant, err);
}

/* --- the end of a run */

static void find_verdict(const struct task_run *r, const struct stw_error *err,
                         struct stw_verdict *v)
{
    struct stw_aspect a = {.level = STW_LEVEL_FINE, .reason = "Scheduled"};
    STW_ASPECT_SAY(&a, "%s", r->blocked ? r->blocked : "Jobs are started on schedule");
    if (r->spec.suspend) {
        a.reason = "Suspended";
        STW_ASPECT_SAY(&a, "no Jobs are started");
    }
    if (err->code != STW_OK)
        stw_aspect_error(&a, err);
    stw_verdict_of(&a, 1, v);
    if (v->level != STW_LEVEL_FINE)
        return;
    v->reason = a.reason;
    stw_format(v->message, sizeof(v->message), "%s", a.message);
    if (!r->spec.suspend && r->next > r->now)
        v->again_ms = (uint64_t)(r->next - r->now) * 1000;
}

static json_t *make_status(const struct task_run *r, const struct stw_verdict *v)
{
    static const char *const keep[] = {"lastScheduleTime", NULL};
    struct stw_status s;
    char time[STW_TIME_LEN];
    stw_status_begin(&s, r->run, &r->object, keep);
    stw_verdict_conditions(v, &s.conditions);
    (void)json_object_set_new(s.tree, "active", json_integer((json_int_t)r->active));
    if (r->count > 0 || r->active > 0) {
        stw_time_format(r->last * 1000000, time);
        (void)json_object_set_new(s.tree, "lastScheduleTime", json_string(time));
    }
    return stw_status_end(&s);
}

/* Of the latest Job, or else of the object: nothing was due before it existed. */
static int64_t last_instant(const struct stw_object *o)
{
    const char *text = json_string_value(json_object_get(o->status, "lastScheduleTime"));
    int64_t us = 0;
    if (stw_time_parse(text ? text : o->created, &us) != 0)
        return 0;
    return us / 1000000;
}

static void reconcile_task(struct stw_subject *subject, struct stw_result *result)
{
    struct task_run *r = (struct task_run *)subject;
    struct stw_error err = {0};
    struct stw_verdict verdict = {0};
    r->now = stw_wall_us(r->run->clock) / 1000000;
    r->last = last_instant(&r->object);
    if (stw_cron_parse(r->spec.schedule, &r->cron, &err) != 0) {
        stw_run_fail(r->run, &err, result);
        return;
    }
    list_jobs(r);
    if (remove_old_jobs(r, &err) == 0 && start_due_job(r, &err) == 0)
        err = (struct stw_error){0}; /* such as a Job that was deleted by another client */
    if (stw_calendar_next(&r->cron, &stw_zone_utc, r->now, &r->next) != 0)
        r->next = 0;
    find_verdict(r, &err, &verdict);
    stw_run_end(r->run, &r->object, &verdict, make_status(r, &verdict), NULL, result);
}

static const struct stw_rule rules[] = {
    {.resource = &job_resource, .verbs = "list,watch,create,delete"},
    {.resource = &kind.resource, .subresource = "finalizers", .verbs = "update"},
    {0},
};

static const struct stw_controller controller = {
    STW_CONTROLLER_OF("crontask", kind),
    STW_OWN_WATCH(kind),
    .watches = (const struct stw_watch *const[]){&jobs, NULL},
    .rules = rules,
    STW_RUN_STATE(struct task_run, spec),
    .reconcile = reconcile_task,
};

static const struct stw_operator program = {
    .name = "cronjob-lite",
    .domain = "batch.example.org",
    .metric_prefix = "cronjob_lite",
    .version = "0.1.0",
    .about = "cronjob-lite starts Jobs on schedules.\n",
    .kinds = (const struct stw_kind *const[]){&kind, NULL},
    .controllers = (const struct stw_controller *const[]){&controller, NULL},
};

int main(int argc, char **argv)
{
    return stw_operator_main(&program, argc, argv);
}
