/* SPDX-License-Identifier: Apache-2.0
 *
 * An API server for unit tests: it keeps objects in the memory of the test's process and speaks HTTP on
 * loopback, so that clients, caches and reconciles run unchanged.  It has no etcd and no controllers but
 * the garbage collector.  It is not for production: there is no TLS and no login.
 *
 * As a real server: get, list (limit, continue, selectors), watch (bookmarks, 410 Gone), create, update,
 * server-side apply with its field ownership and conflicts, merge and JSON patches, delete with
 * preconditions, finalizers and the deletion of dependents, the subresource status, resourceVersion,
 * generation, uid and creationTimestamp, generateName, dryRun, metadata alone, and /version.
 *
 * Its answers were compared with Kubernetes 1.35 and 1.37; those of much older servers differ in field
 * ownership and texts.
 *
 * Other than a real server:
 *  - Nothing is checked against a schema, pruned or defaulted, except as `admit` does; names and
 *    immutable fields are not checked.  The keys of lists and the atomic maps of Kubernetes' own types
 *    are known for those that operators write; lists of custom resources are atomic, except for
 *    conditions, ownerReferences and finalizers.
 *  - Every namespace exists.  Rights are not checked.  Versions of a kind are not converted: each group
 *    and plural is served in one version.
 *  - A pod is deleted at once, dependents with their last owner (propagation is always Background).
 *    Nothing else acts: no pods run, a Deployment has the status that the test gives it.
 *  - A list shows the newest state, whatever resourceVersion it asks for.  Of the subresources there is
 *    status alone; no collection is deleted at once; no strategic merge patch.
 *  - In managedFields, an Update does not name the maps that it made, only what is in them.
 *
 * The functions may be called on any thread.  When memory runs out, the process ends. */
#ifndef STW_TESTING_SERVER_H
#define STW_TESTING_SERVER_H

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/resource.h"
#include "base/util.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stw_test_server;

/* Sets defaults of `object` and judges it, as webhooks do.  `old` is NULL for a CREATE.  -1: refused, with
 * the error's text as the message.  On a thread of the server, which holds no lock. */
typedef int stw_test_admit_fn(void *ctx, const struct stw_resource *resource, json_t **object,
                              const json_t *old, struct stw_error *err);

struct stw_test_server_config {
    const struct stw_resource *const
        *resources;                /* what is served; ended by NULL; borrowed until stop */
    const struct stw_clock *clock; /* of its timestamps; borrowed until stop; NULL: the system's */
    int minor;                     /* of /version; 0: 37 */
    size_t bytes_max; /* of all objects, and of the history; beyond it writes fail; 0: 64 MiB */
    stw_test_admit_fn *admit; /* or NULL */
    void *admit_ctx;
};

/* Listens on a free port of 127.0.0.1.  The caller owns *ret. */
int stw_test_server_start(const struct stw_test_server_config *config, struct stw_test_server **ret,
                          struct stw_error *err) STW_MUST_CHECK;
/* Ends all requests, joins the threads and frees all.  NULL is allowed. */
void stw_test_server_stop(struct stw_test_server *s);
/* "http://127.0.0.1:PORT"; borrowed. */
const char *stw_test_server_url(const struct stw_test_server *s);

/* --- objects, as another client ("test") writes them */

/* Creates the object, or replaces it, with its status.  `object` is borrowed; it has apiVersion, kind and
 * metadata.name.  -1: its resource is not served, or it was refused. */
int stw_test_server_put(struct stw_test_server *s, const json_t *object,
                        struct stw_error *err) STW_MUST_CHECK;
/* A copy, owned by the caller; NULL: there is none. */
json_t *stw_test_server_get(struct stw_test_server *s, const struct stw_resource *r, const char *ns,
                            const char *name);
/* Copies of all in the order of their creation, an array that the caller owns; ns NULL: in all namespaces. */
json_t *stw_test_server_list(struct stw_test_server *s, const struct stw_resource *r,
                             const char *ns);
/* As `kubectl delete` without waiting.  STW_ERR_NOT_FOUND: there is none. */
int stw_test_server_delete(struct stw_test_server *s, const struct stw_resource *r, const char *ns,
                           const char *name, struct stw_error *err) STW_MUST_CHECK;

/* --- requests: the last 4096, at most 16 MiB */

/* A request; as a pattern, NULL and 0 fit all, and the verb "write" fits all verbs that write, without
 * dry runs.  Strings are borrowed. */
struct stw_test_request {
    const char *verb; /* "get", "list", "watch", "create", "update", "patch", "apply", "delete" */
    const struct stw_resource *resource;
    const char *ns, *name, *sub; /* "": none */
    const char *manager;         /* of fields; "" */
    int status;                  /* of the answer: 200 */
    bool dry_run;
    bool failed_on_purpose; /* by a fault */
    const json_t *body;     /* as it was sent; NULL: none; not for patterns */
};
size_t stw_test_server_requests(struct stw_test_server *s, const struct stw_test_request *pattern);
/* The i-th of those that fit, valid until the next request, forget or stop; false: there are less. */
bool stw_test_server_request(struct stw_test_server *s, const struct stw_test_request *pattern,
                             size_t i, struct stw_test_request *ret);
void stw_test_server_forget_requests(struct stw_test_server *s);
/* Appends a line for each request but reads and watches, for people. */
void stw_test_server_tell(struct stw_test_server *s, struct stw_buf *out);

/* --- failures */

struct stw_test_fault {
    struct stw_test_request at; /* which requests fail; status, dry_run and body do not count */
    uint32_t skip, times;       /* the first ones that do not fail; then how many do; 0: 1 */
    int status;                 /* the answer: 403, 409, 500 ...; 0: none, the connection ends */
    const char *reason;         /* of the answer; NULL: that of the status */
    bool done;                  /* the request is carried out, only its answer is lost */
};
#define STW_TEST_FAULTS_MAX 32u
/* Copies it.  A request fails by the first fault that fits.  -1: there are STW_TEST_FAULTS_MAX. */
int stw_test_server_fail(struct stw_test_server *s,
                         const struct stw_test_fault *fault) STW_MUST_CHECK;
/* How many requests are still to fail; 0: every fault has happened. */
uint32_t stw_test_server_faults_left(struct stw_test_server *s);
void stw_test_server_forget_faults(struct stw_test_server *s);
/* Cuts the connections of all watches (NULL) or those of a resource.  With `expired`, the changes so far are
 * forgotten: the next watches get 410 Gone, and clients list again. */
void stw_test_server_break_watches(struct stw_test_server *s, const struct stw_resource *r,
                                   bool expired);

/* Sends a bookmark to all watches, with a new resourceVersion, which is returned: who has read it has seen all
 * changes so far. */
uint64_t stw_test_server_bookmark(struct stw_test_server *s);
/* The newest resourceVersion. */
uint64_t stw_test_server_version(struct stw_test_server *s);

#endif
