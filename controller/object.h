/* SPDX-License-Identifier: Apache-2.0
 *
 * The custom object of a run: read from the cache, judged by its kind's rules, its status written.
 */
#ifndef STW_CONTROLLER_OBJECT_H
#define STW_CONTROLLER_OBJECT_H

#include "controller/controller.h"

#include <jansson.h>

struct stw_object {
    struct stw_buf text;
    struct stw_json_doc doc;
    struct stw_json root; /* metadata (what is kept of it), spec, status */
    char uid[64], resource_version[STW_RV_LEN];
    char created[STW_TIME_LEN];
    int64_t generation;
    bool deleting;
    bool paused, adopt, force_delete; /* annotations steward.dev/... */
    json_t *status;                   /* as it is now; an empty object when there is none */
};

/* Keeps name, namespace, uid, generation, the two timestamps and steward's annotations of metadata,
 * and spec and status as they are, but for conditions: the names of their members would take half
 * the memory of a small object, so each is an array of its values in the order below.  For the
 * watch of a kind itself. */
enum {
    STW_CONDITION_TYPE,
    STW_CONDITION_STATUS,
    STW_CONDITION_GENERATION,
    STW_CONDITION_SINCE,
    STW_CONDITION_REASON,
    STW_CONDITION_MESSAGE,
    STW_CONDITION_PARTS
};
void stw_object_project(const struct stw_controller *const *all, struct stw_json object,
                        struct stw_buf *out);
/* The same with these labels (ended by NULL) and with metadata.finalizers, packed (packed.h). */
void stw_object_project_packed(struct stw_json object, const char *const *labels,
                               struct stw_buf *out);
/* With these labels, metadata.finalizers, and these annotations besides. */
void stw_object_project_keeping(struct stw_json object, const char *const *labels,
                                const char *const *annotations, struct stw_buf *out);

/* -1: it is not in the cache, or there is no memory.  Zeroed `ret`; done() in any case. */
int stw_object_load(const struct stw_run *run, struct stw_object *ret);
int stw_object_load_key(const struct stw_run *run, const char *key, struct stw_object *ret);
void stw_object_done(struct stw_object *o);
#define stw_autoobject __attribute__((cleanup(stw_object_done)))

/* The rules of admission once more, for objects that are older than the webhook or passed it by.
 * Writes the errors joined by ", " and returns how many there are.  Warnings are no matter here,
 * nor is what stands in other objects: that changes by itself.  What the configuration says of
 * database targets counts. */
size_t stw_object_judge(const struct stw_run *run, const struct stw_object *o, struct stw_buf *out);

/* Writes what differs between o->status and `status` (which gets lastReconcileTime), or nothing
 * when they are equal. Under the resourceVersion that was read; when the object has changed
 * meanwhile, but not its generation, again under the new one.  1: written, 0: nothing to write, -1.
 */
int stw_object_write_status(struct stw_run *run, const struct stw_object *o, json_t *status,
                            struct stw_error *err);

/* The same for what has to be known before something is done: under exactly the resourceVersion
 * that was read, else it is a conflict, and however often. */
int stw_object_write_state(struct stw_run *run, const struct stw_object *o, json_t *status,
                           struct stw_error *err);

void stw_object_event(const struct stw_run *run, const struct stw_object *o, bool warning,
                      const char *reason, const char *action, const char *fmt, ...)
    __attribute__((format(printf, 6, 7)));

/* The wait after a transient error, in ms: 1 s * 2^n, at most 5 min (30 s while nobody answers, so
 * that an API server that comes back finds us soon), give or take 20 %, at least what the server
 * asked for. */
uint64_t stw_object_retry_ms(const struct stw_run *run, const struct stw_error *err);
/* status.retry of it. */
json_t *stw_object_retry(const struct stw_run *run, const struct stw_error *err, uint64_t wait_ms);

#endif
