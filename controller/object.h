/* SPDX-License-Identifier: Apache-2.0
 *
 * The custom object of a run: reads it from the cache, validates it and writes its status. */
#ifndef STW_CONTROLLER_OBJECT_H
#define STW_CONTROLLER_OBJECT_H

#include "base/util.h"
#include "controller/controller.h"
#include "controller/template.h"

#include <jansson.h>

struct stw_object {
    struct stw_buf text;
    struct stw_json_doc doc;
    struct stw_json root; /* metadata (the cached part), spec, status */
    char uid[64], resource_version[STW_RV_LEN];
    char created[STW_TIME_LEN];
    int64_t generation;
    bool deleting;
    bool paused, adopt, force_delete; /* annotations DOMAIN/... */
    char consent[STW_CONSENT_LEN];    /* DOMAIN/update-template; "": none, or longer than any is */
    json_t *status;                   /* current status; an empty object when there is none */
    /* The cache has only a stub of it, without the long members (cache/stub.h): */
    bool stub;
    size_t whole_bytes;    /* of the text of the whole object */
    char longest[64];      /* the path of its longest field; "": unknown */
    int64_t longest_bytes; /* its length as JSON */
    size_t charged;        /* against the share of answers, until done() */
};

/* Keeps of metadata: name, namespace, uid, generation, the two timestamps, the finalizers and the
 * operator's annotations.  Keeps spec and status unchanged except conditions: their member names would take
 * half the memory of a small object, so each condition is an array of its values in the order
 * below.  For the watch of a kind itself. */
enum {
    STW_CONDITION_TYPE,
    STW_CONDITION_STATUS,
    STW_CONDITION_GENERATION,
    STW_CONDITION_SINCE,
    STW_CONDITION_REASON,
    STW_CONDITION_MESSAGE,
    STW_CONDITION_PARTS
};
void stw_object_project(const struct stw_operator *op, struct stw_json object, struct stw_buf *out);
/* The same plus these labels (ended by NULL), packed (packed.h). */
void stw_object_project_packed(const struct stw_operator *op, struct stw_json object,
                               const char *const *labels, struct stw_buf *out);
/* Appends a text of stw_object_project_keeping packed.  A long one is not: only a stub of it is kept. */
void stw_object_pack(const struct stw_buf *text, struct stw_buf *out);
/* With these labels and these additional annotations; each may be NULL.  Not packed. */
void stw_object_project_keeping(const struct stw_operator *op, struct stw_json object,
                                const char *const *labels, const char *const *annotations,
                                struct stw_buf *out);

/* The whole object of the run.  A large one, which the cache does not keep whole, is read from the API
 * server.  -1: not in the cache, or it cannot be read, or out of memory.  `ret` must be zeroed; call
 * done() in any case. */
int stw_object_load(const struct stw_run *run, struct stw_object *ret);
/* What the cache has of any object of the kind: of a large one without its long values (ret->stub).  No
 * I/O. */
int stw_object_load_key(const struct stw_run *run, const char *key, struct stw_object *ret);
/* Replaces a stub by the whole object, from the API server: one GET, on the worker of the run.
 * STW_ERR_NOT_FOUND: it is gone.  0 at once if it is not a stub. */
int stw_object_fetch(const struct stw_run *run, struct stw_object *o,
                     struct stw_error *err) STW_MUST_CHECK;
/* The whole object `key` of `c`, another controller.  1: it is not in the cache.  -1: it is large, and
 * could not be read, or there is no memory for it now.  `ret` as above. */
int stw_object_load_other(const struct stw_run *run, const struct stw_controller *c,
                          const char *key, struct stw_object *ret,
                          struct stw_error *err) STW_MUST_CHECK;
void stw_object_done(struct stw_object *o);
#define stw_autoobject __attribute__((cleanup(stw_object_done)))

/* Runs the admission rules again, for objects that are older than the webhook or bypassed it.
 * Writes the errors joined by ", " and returns their number.  Warnings are ignored, and so are
 * other objects, because they can change by themselves.  The configured database targets are
 * checked. */
size_t stw_object_judge(const struct stw_run *run, const struct stw_object *o, struct stw_buf *out);

/* Writes the difference between o->status and `status` (which gets lastReconcileTime); nothing when
 * they are equal.  The patch requires the resourceVersion that was read.  If the object has changed
 * meanwhile, but not its generation, it is retried with the new one.  1: written, 0: nothing to
 * write, -1: error. */
int stw_object_write_status(struct stw_run *run, const struct stw_object *o, json_t *status,
                            struct stw_error *err);

/* The same for state that must be stored before an action.  It requires exactly the resourceVersion
 * that was read, else it is a conflict.  The number of writes is not limited. */
int stw_object_write_state(struct stw_run *run, const struct stw_object *o, json_t *status,
                           struct stw_error *err) STW_MUST_CHECK;

/* Records an event about the object of the run.  `reason` and `action` are CamelCase; the note is a
 * sentence, cut at 1024 bytes and cleaned of control characters.  All are copied.
 * Repeats become one series, and the events of one object are limited, see kube/events.h; one that
 * cannot be sent is counted and dropped.  Never blocks; on any thread. */
void stw_object_event(const struct stw_run *run, const struct stw_object *o, bool warning,
                      const char *reason, const char *action, const char *fmt, ...)
    __attribute__((format(printf, 6, 7)));

/* The wait after a transient error, in ms: 1 s * 2^n, at most 5 min, plus or minus 20 %, and at
 * least what the server asked for.  While the API server does not respond, the maximum is 30 s, so
 * that steward finds it soon when it comes back. */
uint64_t stw_object_retry_ms(const struct stw_run *run, const struct stw_error *err);
/* The value of status.retry. */
json_t *stw_object_retry(const struct stw_run *run, const struct stw_error *err, uint64_t wait_ms);

#endif
