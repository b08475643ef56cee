/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/object.h"

#include "base/log.h"
#include "base/process/memory_budget.h"
#include "base/util.h"
#include "base/visible.h"
#include "controller/cache/stub.h"
#include "controller/condition.h"
#include "controller/object/object_priv.h"
#include "controller/packed.h"
#include "controller/queue/guard.h"
#include "controller/queue/queue.h"
#include "kube/tree.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#define TEXT_MAX (8u << 20)
#define STATUS_TRIES 3

/* --- the projection */

static void add_raw(struct stw_buf *out, const char *before, struct stw_json value)
{
    size_t len;
    const char *raw = stw_json_raw(value, &len);
    if (len == 0)
        return;
    stw_buf_adds(out, before);
    stw_buf_add(out, raw, len);
}

/* The operator's own annotations, and `others` (ended by NULL, or NULL). */
static bool keeps_annotation(const struct stw_operator *op, struct stw_json key,
                             const char *const *others)
{
    size_t len, domain = strlen(op->domain);
    const char *raw = stw_json_raw(key, &len);
    if (len > domain + 1 && strncmp(raw + 1, op->domain, domain) == 0 && raw[domain + 1] == '/')
        return true;
    for (; others && *others; others++)
        if (stw_json_is(key, *others))
            return true;
    return false;
}

static void add_annotations(const struct stw_operator *op, struct stw_json annotations,
                            const char *const *others, struct stw_buf *out)
{
    struct stw_json key, value;
    bool any = false;
    stw_json_foreach (annotations, key, value) {
        size_t len;
        const char *raw = stw_json_raw(key, &len);
        if (!keeps_annotation(op, key, others))
            continue;
        stw_buf_adds(out, any ? "," : ",\"annotations\":{");
        stw_buf_add(out, raw, len);
        add_raw(out, ":", value);
        any = true;
    }
    stw_buf_adds(out, any ? "}" : "");
}

static const char *const condition_keys[] = {
    [STW_CONDITION_TYPE] = "type",
    [STW_CONDITION_STATUS] = "status",
    [STW_CONDITION_GENERATION] = "observedGeneration",
    [STW_CONDITION_SINCE] = "lastTransitionTime",
    [STW_CONDITION_REASON] = "reason",
    [STW_CONDITION_MESSAGE] = "message",
};
static_assert(STW_COUNT(condition_keys) == STW_CONDITION_PARTS, "one key for each part");

static void add_conditions(struct stw_json list, struct stw_buf *out)
{
    struct stw_json key, condition;
    const char *before = "";
    stw_json_foreach (list, key, condition) {
        stw_buf_adds(out, before);
        stw_buf_addc(out, '[');
        before = ",";
        for (size_t i = 0; i < STW_CONDITION_PARTS; i++) {
            struct stw_json part = stw_json_get(condition, condition_keys[i]);
            stw_buf_adds(out, i ? "," : "");
            if (stw_json_there(part))
                add_raw(out, "", part);
            else
                stw_buf_adds(out, "null");
        }
        stw_buf_addc(out, ']');
    }
}

static void add_status(struct stw_json status, struct stw_buf *out)
{
    struct stw_json key, value;
    const char *before = "";
    stw_json_foreach (status, key, value) {
        stw_buf_adds(out, before);
        before = ",";
        add_raw(out, "", key);
        if (stw_json_is(key, "conditions")) {
            stw_buf_adds(out, ":[");
            add_conditions(value, out);
            stw_buf_addc(out, ']');
        } else {
            add_raw(out, ":", value);
        }
    }
}

static void add_labels(struct stw_json all, const char *const *wanted, struct stw_buf *out)
{
    bool any = false;
    for (; *wanted; wanted++) {
        struct stw_json value = stw_json_get(all, *wanted);
        if (!stw_json_there(value))
            continue;
        stw_buf_adds(out, any ? "," : ",\"labels\":{");
        stw_buf_json_strz(out, *wanted);
        add_raw(out, ":", value);
        any = true;
    }
    stw_buf_adds(out, any ? "}" : "");
}

static void project_object(const struct stw_operator *op, struct stw_json object,
                           const char *const *labels, const char *const *annotations,
                           struct stw_buf *out)
{
    struct stw_json m = stw_json_get(object, "metadata");
    add_raw(out, "{\"metadata\":{\"name\":", stw_json_get(m, "name"));
    add_raw(out, ",\"namespace\":", stw_json_get(m, "namespace"));
    add_raw(out, ",\"uid\":", stw_json_get(m, "uid"));
    add_raw(out, ",\"generation\":", stw_json_get(m, "generation"));
    add_raw(out, ",\"creationTimestamp\":", stw_json_get(m, "creationTimestamp"));
    add_raw(out, ",\"deletionTimestamp\":", stw_json_get(m, "deletionTimestamp"));
    add_annotations(op, stw_json_get(m, "annotations"), annotations, out);
    if (labels)
        add_labels(stw_json_get(m, "labels"), labels, out);
    add_raw(out, ",\"finalizers\":", stw_json_get(m, "finalizers"));
    stw_buf_adds(out, "}");
    add_raw(out, ",\"spec\":", stw_json_get(object, "spec"));
    stw_buf_adds(out, ",\"status\":{");
    add_status(stw_json_get(object, "status"), out);
    stw_buf_adds(out, "}}");
}

void stw_object_project(const struct stw_operator *op, struct stw_json object, struct stw_buf *out)
{
    project_object(op, object, NULL, NULL, out);
}

void stw_object_pack(const struct stw_buf *text, struct stw_buf *out)
{
    if (text->failed)
        out->failed = true;
    else if (text->len > STW_STUB_TEXT_MAX)
        stw_buf_add(out, text->data, text->len);
    else
        stw_pack(stw_buf_str(text), text->len, out);
}

void stw_object_project_packed(const struct stw_operator *op, struct stw_json object,
                               const char *const *labels, struct stw_buf *out)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(TEXT_MAX);
    project_object(op, object, labels, NULL, &text);
    stw_object_pack(&text, out);
}

void stw_object_project_keeping(const struct stw_operator *op, struct stw_json object,
                                const char *const *labels, const char *const *annotations,
                                struct stw_buf *out)
{
    project_object(op, object, labels, annotations, out);
}

/* --- reading */

static bool is_on(const struct stw_run *run, struct stw_json metadata, const char *annotation)
{
    char key[STW_OWN_NAME_LEN];
    stw_operator_text(run->op, annotation, key);
    return stw_json_is(stw_json_get(stw_json_get(metadata, "annotations"), key), "true");
}

static void read_consent(const struct stw_run *run, struct stw_json metadata, char *out)
{
    char key[STW_OWN_NAME_LEN];
    stw_operator_text(run->op, STW_UPDATE_TEMPLATE, key);
    if (stw_json_strcpy(stw_json_get(stw_json_get(metadata, "annotations"), key), out,
                        STW_CONSENT_LEN) != 0)
        *out = '\0';
}

static json_t *expand_condition(const json_t *parts)
{
    json_t *condition = json_object();
    for (size_t i = 0; i < STW_CONDITION_PARTS; i++) {
        json_t *part = json_array_get(parts, i);
        if (part && !json_is_null(part))
            (void)json_object_set(condition, condition_keys[i], part);
    }
    return condition;
}

static json_t *read_status(struct stw_json root)
{
    size_t i;
    struct stw_json stored = stw_json_get(root, "status");
    json_t *status = stw_json_there(stored) ? stw_tree_read(stored) : json_object();
    json_t *list = json_object_get(status, "conditions");
    for (i = 0; i < json_array_size(list); i++)
        (void)json_array_set_new(list, i, expand_condition(json_array_get(list, i)));
    return status;
}

/* Scans ret->text, and unpacks it if it is packed. */
static int scan_text(struct stw_object *ret)
{
    stw_autobuf struct stw_buf unpacked = STW_BUF_INIT(TEXT_MAX);
    ret->doc.trusted = true;
    if (stw_unpack_scan(stw_buf_str(&ret->text), ret->text.len, &unpacked, &ret->doc) != 0)
        return -1;
    if (unpacked.len > 0) {
        struct stw_buf packed = ret->text;
        ret->text = unpacked;
        unpacked = packed;
    }
    return 0;
}

static void read_stub(struct stw_object *ret)
{
    struct stw_json stub = stw_json_get(ret->root, "stub");
    int64_t bytes = 0;
    ret->stub = stw_stub_is(ret->root);
    (void)stw_json_int(stw_json_get(stub, "bytes"), &bytes);
    ret->whole_bytes = ret->stub ? (size_t)STW_MAX(bytes, 0) : ret->text.len;
    (void)stw_json_strcpy(stw_json_get(stub, "large"), ret->longest, sizeof(ret->longest));
    (void)stw_json_int(stw_json_get(stub, "largeBytes"), &ret->longest_bytes);
}

static int read_object(const struct stw_run *run, struct stw_object *ret)
{
    if (scan_text(ret) != 0)
        return -1;
    ret->root = stw_json_root(&ret->doc);
    struct stw_json m = stw_json_get(ret->root, "metadata");
    (void)stw_json_strcpy(stw_json_get(m, "uid"), ret->uid, sizeof(ret->uid));
    (void)stw_json_strcpy(stw_json_get(m, "creationTimestamp"), ret->created, sizeof(ret->created));
    (void)stw_json_int(stw_json_get(m, "generation"), &ret->generation);
    ret->deleting = stw_json_there(stw_json_get(m, "deletionTimestamp"));
    ret->paused = is_on(run, m, STW_PAUSED);
    ret->adopt = is_on(run, m, STW_ADOPT);
    ret->force_delete = is_on(run, m, STW_FORCE_DELETE);
    read_consent(run, m, ret->consent);
    read_stub(ret);
    ret->status = read_status(ret->root);
    return ret->status ? 0 : -1;
}

int stw_object_load_key(const struct stw_run *run, const char *key, struct stw_object *ret)
{
    ret->text = STW_BUF_INIT(TEXT_MAX);
    return stw_informer_get(stw_run_cache(run, run->controller->own), key, &ret->text,
                            ret->resource_version) == 0
               ? read_object(run, ret)
               : -1;
}

/* For each byte of the text: the answer, its tokens, the text and its own. */
#define OTHER_FACTOR 5

int stw_object_load_other(const struct stw_run *run, const struct stw_controller *c,
                          const char *key, struct stw_object *ret, struct stw_error *err)
{
    char ns[STW_KEY_LEN], name[STW_KEY_LEN];
    struct stw_run there = *run;
    stw_key_split(key, ns, name);
    there.controller = c;
    there.key = key;
    there.ns = ns;
    there.name = name;
    if (stw_object_load_key(&there, key, ret) != 0)
        return 1;
    size_t bytes = ret->stub ? ret->whole_bytes * OTHER_FACTOR : 0;
    bytes = stw_spare_has(bytes) ? 0 : bytes;
    if (bytes > 0 && !stw_share_take(STW_SHARE_ANSWERS, bytes)) {
        stw_spare_want(bytes);
        return stw_fail(err, STW_ERR_UNAVAILABLE,
                        "the memory for large answers is in use: no room for %s %s, of %zu bytes",
                        c->kind->kind, key, ret->whole_bytes);
    }
    int rc = stw_object_fetch(&there, ret, err);
    ret->charged = bytes;
    return rc;
}

int stw_object_load_text(const struct stw_run *run, const struct stw_buf *text,
                         struct stw_object *ret)
{
    ret->text = STW_BUF_INIT(TEXT_MAX);
    stw_buf_add(&ret->text, stw_buf_str(text), text->len);
    stw_format(ret->resource_version, sizeof(ret->resource_version), "1");
    return ret->text.failed ? -1 : read_object(run, ret);
}

/* Projects an object of the API server as the cache would, but whole. */
static int load_answer(const struct stw_run *run, const struct stw_buf *answer,
                       struct stw_object *ret, struct stw_error *err)
{
    stw_autojson struct stw_json_doc doc = {.trusted = true};
    if (stw_json_scan(&doc, stw_buf_str(answer), answer->len, err) != 0)
        return -1;
    struct stw_json root = stw_json_root(&doc);
    ret->text = STW_BUF_INIT(TEXT_MAX);
    run->controller->own->project(run->op, root, &ret->text);
    if (stw_json_strcpy(stw_json_path(root, "metadata.resourceVersion"), ret->resource_version,
                        sizeof(ret->resource_version)) != 0 ||
        ret->text.failed || read_object(run, ret) != 0)
        return stw_fail_memory(err);
    return 0;
}

int stw_object_fetch(const struct stw_run *run, struct stw_object *o, struct stw_error *err)
{
    stw_autobuf struct stw_buf answer = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    stw_autoobject struct stw_object whole = {0};
    if (!o->stub)
        return 0;
    if (stw_kube_get(run->client, run->controller->resource, run->ns, run->name, &answer, err) !=
            0 ||
        load_answer(run, &answer, &whole, err) != 0)
        return -1;
    if (!stw_streq(whole.uid, o->uid))
        return stw_fail(err, STW_ERR_CONFLICT, "%s %s was made again", run->controller->kind->kind,
                        run->key);
    struct stw_object stub = *o;
    *o = whole;
    o->root = stw_json_root(&o->doc);
    whole = stub;
    return 0;
}

int stw_object_load(const struct stw_run *run, struct stw_object *ret)
{
    struct stw_error err = {0};
    return stw_object_load_key(run, run->key, ret) == 0 && stw_object_fetch(run, ret, &err) == 0
               ? 0
               : -1;
}

void stw_object_done(struct stw_object *o)
{
    json_decref(o->status);
    stw_json_done(&o->doc);
    stw_buf_done(&o->text);
    stw_share_give_back(STW_SHARE_ANSWERS, o->charged);
    o->status = NULL;
    o->charged = 0;
}

size_t stw_object_judge(const struct stw_run *run, const struct stw_object *o, struct stw_buf *out)
{
    stw_autofindings struct stw_findings f = {0};
    const struct stw_env env = {.op = run->op, .product = run->env->product};
    struct stw_admission a = {.kind = run->controller->kind,
                              .operation = STW_CREATE,
                              .ns = run->ns,
                              .name = run->name,
                              .object = o->root,
                              .env = &env};
    stw_kind_validate(&a, &f);
    stw_findings_text(&f, out);
    return f.error_count;
}

/* --- writing */

static int read_resource_version(struct stw_run *run, const struct stw_object *o, char *rv,
                                 struct stw_error *err)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    stw_autojson struct stw_json_doc doc = {0};
    int64_t generation = 0;
    if (stw_kube_get(run->client, run->controller->resource, run->ns, run->name, &text, err) != 0 ||
        stw_json_scan(&doc, stw_buf_str(&text), text.len, err) != 0)
        return -1;
    struct stw_json m = stw_json_get(stw_json_root(&doc), "metadata");
    (void)stw_json_int(stw_json_get(m, "generation"), &generation);
    if (!stw_json_is(stw_json_get(m, "uid"), o->uid) || generation != o->generation ||
        stw_json_strcpy(stw_json_get(m, "resourceVersion"), rv, STW_RV_LEN) != 0)
        return stw_fail(err, STW_ERR_CONFLICT, "%s %s has changed meanwhile",
                        run->controller->kind->kind, run->key);
    return 0;
}

static int patch_once(struct stw_run *run, json_t *diff, const char *rv, struct stw_error *err)
{
    stw_autobuf struct stw_buf answer = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    json_auto_t *patch =
        json_pack("{s:{s:s},s:O}", "metadata", "resourceVersion", rv, "status", diff);
    if (!patch)
        return stw_fail_memory(err);
    if (stw_kube_merge_patch(run->client,
                             STW_PLACE(run->controller->resource, run->ns, run->name, "status"),
                             patch, run->field_manager, &answer, err) != 0)
        return -1;
    stw_informer_saw(stw_run_cache(run, run->controller->own), &answer, NULL);
    return 1;
}

/* True if no condition has another status or reason; messages are ignored. */
static bool same_conditions(const json_t *before, const json_t *now)
{
    static const char *const keys[] = {"status", "reason"};
    size_t i;
    const json_t *one;
    if (json_array_size(before) != json_array_size(now))
        return false;
    json_array_foreach (now, i, one) {
        const char *type = json_string_value(json_object_get(one, "type"));
        const json_t *was = stw_condition_find(before, type ? type : "");
        for (size_t k = 0; k < STW_COUNT(keys); k++)
            if (!json_equal(json_object_get(was, keys[k]), json_object_get(one, keys[k])))
                return false;
    }
    return true;
}

/* True if the status was written too often with no change except in messages.  Some text in them
 * then changes by itself, and each write triggers the next. */
static bool goes_in_circles(struct stw_run *run, const struct stw_object *o, const json_t *status)
{
    char what[STW_KEY_LEN + 64];
    json_int_t seen = json_integer_value(json_object_get(o->status, "observedGeneration"));
    if (seen != o->generation || !same_conditions(json_object_get(o->status, "conditions"),
                                                  json_object_get(status, "conditions")))
        return false;
    stw_format(what, sizeof(what), "%s/%s", run->controller->resource->plural, run->key);
    enum stw_guard_answer answer = stw_guard_write(
        stw_run_guard(run), what, 0, stw_now_ms(run->clock), STW_GUARD_STATUS_PAUSE_MS);
    if (answer == STW_GUARD_TRIPPED) {
        stw_run_count_hot_loop(run);
        stw_log(STW_LOG_WARN, "the status was written too often, delaying the next write",
                STW_INT("writes", STW_GUARD_WRITES), STW_INT("waitMs", STW_GUARD_STATUS_PAUSE_MS));
    }
    return answer != STW_GUARD_GO;
}

/* Returns NULL when there is none. */
static json_t *build_status_diff(const struct stw_object *o, json_t *status)
{
    json_t *last = json_object_get(o->status, "lastReconcileTime");
    if (last)
        (void)json_object_set(status, "lastReconcileTime", last);
    return stw_merge_diff(o->status, status);
}

static void set_time(const struct stw_run *run, json_t *diff)
{
    char now[STW_TIME_LEN];
    stw_time_format(stw_wall_us(run->clock), now);
    (void)json_object_set_new(diff, "lastReconcileTime", json_string(now));
}

int stw_object_write_state(struct stw_run *run, const struct stw_object *o, json_t *status,
                           struct stw_error *err)
{
    json_auto_t *diff = build_status_diff(o, status);
    if (!diff)
        return 0;
    set_time(run, diff);
    return patch_once(run, diff, o->resource_version, err);
}

int stw_object_write_status(struct stw_run *run, const struct stw_object *o, json_t *status,
                            struct stw_error *err)
{
    char rv[STW_RV_LEN];
    json_auto_t *diff = build_status_diff(o, status);
    if (!diff || goes_in_circles(run, o, status))
        return 0;
    set_time(run, diff);
    stw_format(rv, sizeof(rv), "%s", o->resource_version);
    for (int i = 0;; i++) {
        int rc = patch_once(run, diff, rv, err);
        /* The cache has the answer now, and with it a change of metadata that this run has not
         * read.  The watch event of that change is skipped, so the key is run again here. */
        if (rc > 0 && i > 0)
            stw_manager_enqueue(run->manager, run->controller->kind->kind, run->key);
        if (rc > 0 || !err || err->code != STW_ERR_CONFLICT || i == STATUS_TRIES)
            return rc;
        *err = (struct stw_error){0};
        if (read_resource_version(run, o, rv, err) != 0)
            return -1;
    }
}

void stw_object_event(const struct stw_run *run, const struct stw_object *o, bool warning,
                      const char *reason, const char *action, const char *fmt, ...)
{
    char note[STW_CONDITION_MESSAGE_MAX + 8];
    va_list ap;
    va_start(ap, fmt);
    stw_vformat(note, sizeof(note), fmt, ap);
    va_end(ap);
    stw_message_clean(note, STW_CONDITION_MESSAGE_MAX);
    struct stw_event_object regarding = {.resource = run->controller->resource,
                                         .ns = run->ns,
                                         .name = run->name,
                                         .uid = o->uid,
                                         .resource_version = o->resource_version};
    stw_events_record(run->events, &regarding, warning, reason, action, note);
}

uint64_t stw_object_retry_ms(const struct stw_run *run, const struct stw_error *err)
{
    bool nobody = err->code == STW_ERR_UNAVAILABLE && err->http == 0;
    if (run->left_ms > 0) /* keeps the time that status.retry already has */
        return STW_MAX(run->left_ms, (uint64_t)err->retry_after_ms);
    uint64_t wait = stw_backoff_ms(run->key, run->failures, 1000, nobody ? 30000 : 300000);
    return STW_MAX(wait, err->retry_after_ms);
}

json_t *stw_object_retry(const struct stw_run *run, const struct stw_error *err, uint64_t wait_ms)
{
    char next[STW_TIME_LEN], text[sizeof(err->text)];
    stw_time_format(stw_wall_us(run->clock) + (int64_t)wait_ms * 1000, next);
    stw_format(text, sizeof(text), "%s", err->text);
    stw_message_clean(text, sizeof(text) - 1);
    stw_visible_replace(text, sizeof(text) - 1);
    return json_pack("{s:I,s:s,s:s}", "count", (json_int_t)run->failures + 1, "nextTime", next,
                     "lastError", text);
}
