/* SPDX-License-Identifier: Apache-2.0
 *
 * ExternalThing: a record of a REST service, created, updated, repaired and deleted with an object.
 * It shows what an operator of something outside the cluster needs: a finalizer, deadlines, and a
 * status that says what is wrong while the service is down.
 *
 * The record is URL/things/UID, {"owner": "NAMESPACE/NAME", "value": "..."}.  The object's uid makes
 * it unique: no other object gets at it.  PUT creates and replaces it, so it can be repeated.
 *
 * The service and its token are the operator's own: EXTERNALTHING_URL and EXTERNALTHING_TOKEN in its
 * environment, which its Deployment takes from a Secret.  An object names neither: otherwise its
 * author could direct the operator, and the token, to any address. */
#include <steward/client.h>
#include <steward/controller.h>
#include <steward/kind.h>
#include <steward/operator.h>

#include <curl/curl.h>

#define FINALIZER "example.org/externalthing"
#define SYNCED "RecordSynced"
#define ANSWER_MAX (64u * 1024)
#define CONNECT_MS 3000L
#define TOTAL_MS 10000L
#define RECORD_MAX 1200
#define RETRY_AFTER_MAX_S 300 /* most of what the service may ask for */

/* --- the type */

struct thing {
    const char *value;
    int64_t check_seconds;
};

static const struct stw_field spec_fields[] = {
    {.name = "value",
     STW_FIELD(STW_T_STRING, struct thing, value),
     .help = "Value of the record.",
     .required = true,
     STW_RANGE(1, 1024)},
    {.name = "checkSeconds",
     STW_FIELD(STW_T_INT, struct thing, check_seconds),
     .help = "How often the record is compared with value, in seconds.",
     .def = "60",
     STW_RANGE(1, 86400)},
    {0},
};
static const struct stw_field status_fields[] = {
    {.name = "record", .type = STW_T_STRING, .help = "URL of the record."}, {0}};
static const struct stw_column columns[] = {STW_COLUMN_READY, STW_COLUMN_AGE, {0}};

const struct stw_kind stw_kind_externalthing = {
    .group = "example.org",
    .version = "v1",
    .kind = "ExternalThing",
    .plural = "externalthings",
    .namespaced = true,
    .singular = "externalthing",
    .help = "ExternalThing is a record of an external service.",
    .spec = spec_fields,
    .spec_size = sizeof(struct thing),
    .status = status_fields,
    .columns = columns,
    .operations = STW_CREATE | STW_UPDATE,
    .finalizer = FINALIZER,
};

struct thing_run { /* memory of one run; it begins with what every run has */
    STW_SUBJECT;
    struct thing spec;
    char record[RECORD_MAX]; /* its URL; "" if there is no service */
    struct stw_error err;
};

/* --- one request */

static size_t on_body(char *data, size_t one, size_t count, void *ctx)
{
    struct stw_buf *answer = ctx;
    stw_buf_add(answer, data, one * count);
    return answer->failed ? 0 : one * count; /* 0 ends the transfer: the answer is too long */
}

/* The operator stops, or another replica leads now: no need to wait for the service. */
static int on_progress(void *ctx, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    const struct thing_run *t = ctx;
    (void)a, (void)b, (void)c, (void)d;
    return !stw_run_may_write(t->run);
}

/* The HTTP status, or -1.  Errors name no part of the answer, which could repeat the token. */
static long request(struct thing_run *t, const char *method, const char *body,
                    struct stw_buf *answer)
{
    const char *token = getenv("EXTERNALTHING_TOKEN");
    struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json");
    CURL *h = curl_easy_init();
    curl_off_t after = 0;
    long status = 0;
    if (!h || !headers) {
        curl_slist_free_all(headers);
        curl_easy_cleanup(h);
        return stw_fail_memory(&t->err);
    }
    curl_easy_setopt(h, CURLOPT_URL, t->record);
    curl_easy_setopt(h, CURLOPT_CUSTOMREQUEST, method);
    curl_easy_setopt(h, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(h, CURLOPT_FOLLOWLOCATION, 0L); /* a redirect would get the token */
    curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(h, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
    curl_easy_setopt(h, CURLOPT_TIMEOUT_MS, TOTAL_MS);
    curl_easy_setopt(h, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(h, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(h, CURLOPT_XFERINFODATA, t);
    curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(h, CURLOPT_WRITEDATA, answer);
    if (body)
        curl_easy_setopt(h, CURLOPT_POSTFIELDS, body);
    if (token) {
        curl_easy_setopt(h, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
        curl_easy_setopt(h, CURLOPT_XOAUTH2_BEARER, token);
    }
    CURLcode rc = curl_easy_perform(h);
    curl_easy_getinfo(h, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(h, CURLINFO_RETRY_AFTER, &after);
    curl_easy_cleanup(h);
    curl_slist_free_all(headers);
    if (rc == CURLE_ABORTED_BY_CALLBACK)
        return stw_fail(&t->err, STW_ERR_CANCELLED, "stopped");
    if (rc == CURLE_OK && ((status >= 200 && status < 300) || (status == 404 && !body)))
        return status;
    if (rc == CURLE_OK)
        (void)stw_fail(&t->err, STW_ERR_UNAVAILABLE, "the service answered %s with status %ld",
                       method, status);
    else
        (void)stw_fail(&t->err, STW_ERR_UNAVAILABLE, "%s: %s", method,
                       answer->failed ? "the answer is too long" : curl_easy_strerror(rc));
    t->err.http = (int)status;
    t->err.retry_after_ms = (uint32_t)STW_MIN(STW_MAX(after, 0), RETRY_AFTER_MAX_S) * 1000;
    return -1;
}

/* --- the record */

/* 1: it is as wanted, 0: it is missing or differs (`ret_there`), -1: t->err. */
static int compare_record(struct thing_run *t, bool *ret_there)
{
    stw_autobuf struct stw_buf answer = STW_BUF_INIT(ANSWER_MAX);
    stw_autojson struct stw_json_doc doc = {.max = 1000};
    long status = request(t, "GET", NULL, &answer);
    *ret_there = status >= 0 && status != 404;
    if (!*ret_there)
        return status < 0 ? -1 : 0;
    if (stw_json_scan(&doc, stw_buf_str(&answer), answer.len, NULL) != 0)
        return stw_fail(&t->err, STW_ERR_UNAVAILABLE, "the service's answer is not a record");
    return stw_json_is(stw_json_get(stw_json_root(&doc), "owner"), t->run->key) &&
           stw_json_is(stw_json_get(stw_json_root(&doc), "value"), t->spec.value);
}

static int write_record(struct thing_run *t)
{
    stw_autobuf struct stw_buf answer = STW_BUF_INIT(ANSWER_MAX);
    json_auto_t *record = json_pack("{s:s,s:s}", "owner", t->run->key, "value", t->spec.value);
    stw_autofree char *body = record ? json_dumps(record, JSON_COMPACT) : NULL;
    if (!body)
        return stw_fail_memory(&t->err);
    return request(t, "PUT", body, &answer) < 0 ? -1 : 0;
}

/* The finalizer first: from then on the record cannot be forgotten.  The webhook has added it, except to
 * objects that were created without the webhook. */
static int sync_record(struct thing_run *t)
{
    bool there, was_synced = stw_status_was_applied(&t->object, SYNCED, NULL);
    if (stw_finalizer_add(t->run, &t->object, FINALIZER, &t->err) < 0)
        return -1;
    int same = compare_record(t, &there);
    if (same != 0)
        return same < 0 ? -1 : 0;
    if (write_record(t) != 0)
        return -1;
    stw_object_event(t->run, &t->object, false,
                     was_synced ? "DriftRepaired"
                     : there    ? "Updated"
                                : "Created",
                     "Write", "wrote the record, which was %s", there ? "different" : "not there");
    return 0;
}

/* --- the reconcile */

static int find_service(struct thing_run *t)
{
    const char *url = getenv("EXTERNALTHING_URL");
    if (!url || (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0))
        return stw_fail(&t->err, STW_ERR_UNAVAILABLE, "EXTERNALTHING_URL names no service");
    if (stw_format_whole(t->record, sizeof(t->record), "%s/things/%s", url, t->object.uid) != 0)
        return stw_fail(&t->err, STW_ERR_UNAVAILABLE, "EXTERNALTHING_URL is too long");
    return 0;
}

/* Ends a run with the condition and the status.  What fails outside is always transient: it is
 * retried with a growing pause, which status.retry shows. */
static void end_run(struct thing_run *t, struct stw_result *result)
{
    struct stw_aspect synced = {.type = SYNCED,
                                .level = STW_LEVEL_FINE,
                                .truth = STW_TRUE,
                                .reason = STW_REASON_SYNCED,
                                .message = "the record is as this object wants it",
                                .again_ms = (uint64_t)t->spec.check_seconds * 1000};
    if (t->err.code != STW_OK) {
        synced.level = STW_LEVEL_RETRYING;
        synced.truth = STW_FALSE;
        synced.reason = "ServiceFailed";
        synced.err = &t->err;
        STW_ASPECT_SAY(&synced, "%s", t->err.text);
    }
    stw_run_report(t->run, &t->object, &synced, 1, json_pack("{s:s}", "record", t->record), result);
}

static void reconcile_thing(struct stw_subject *subject, struct stw_result *result)
{
    struct thing_run *t = (struct thing_run *)subject;
    if (find_service(t) == 0)
        (void)sync_record(t); /* t->err */
    end_run(t, result);
}

/* The record first, then the finalizer: without it the API server deletes the object.  The
 * annotation force-delete gives up on a service that will not come back. */
static void delete_thing(struct stw_subject *subject, struct stw_result *result)
{
    struct thing_run *t = (struct thing_run *)subject;
    stw_autobuf struct stw_buf answer = STW_BUF_INIT(ANSWER_MAX);
    if (!stw_finalizer_has(&t->object, FINALIZER))
        return;
    bool deleted = find_service(t) == 0 && request(t, "DELETE", NULL, &answer) >= 0;
    if (!deleted && (!t->object.force_delete || t->err.code == STW_ERR_CANCELLED)) {
        end_run(t, result);
        return;
    }
    if (!deleted)
        stw_object_event(t->run, &t->object, true, "FinalizerForced", "Delete",
                         "the record stays on the service: %s", t->err.text);
    t->err = (struct stw_error){0};
    if (stw_finalizer_remove(t->run, &t->object, FINALIZER, &t->err) < 0)
        stw_run_fail(t->run, &t->err, result);
}

/* --- the controller */

static const char *const conditions[] = {SYNCED, NULL};

const struct stw_controller stw_controller_externalthing = {
    STW_CONTROLLER_OF("externalthing", stw_kind_externalthing),
    STW_OWN_WATCH(stw_kind_externalthing),
    .conditions = conditions,
    .worker_factor = 4, /* they wait for the service most of the time */
    STW_RUN_STATE(struct thing_run, spec),
    .reconcile = reconcile_thing,
    .deleting = delete_thing,
};
