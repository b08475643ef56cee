/* SPDX-License-Identifier: Apache-2.0
 *
 * A test of a reconcile without a cluster: an API server in memory (server.h), and beside it the manager of
 * the operator, with its client, caches, queues and workers as in the program.  The test puts objects,
 * waits until nothing is left to do, and looks at the objects and requests.
 *
 *     struct stw_test *t = stw_test_begin(&(struct stw_test_config){.op = &program});
 *     stw_test_put(t, json_pack(...));
 *     stw_test_settle(t);
 *     assert_string_equal(stw_test_text(t, &stw_res_configmap, "default/hello", "data.message"), "...");
 *     stw_test_end(t);
 *
 * Objects of the operator's own kinds pass its webhooks first: they get their defaults and finalizer, and
 * bad ones are refused.
 *
 * What cannot be done ends the test: the function `fail` of the configuration gets a text with what was
 * waited for, the failures of reconciles, and the writes so far.  If it returns, so does the function
 * that called it, with false, NULL or "".  All waits have a deadline.
 *
 * All functions are called on the thread of the test.  A key is "namespace/name", or "name" of a
 * cluster-wide object. */
#ifndef STW_TESTING_TEST_H
#define STW_TESTING_TEST_H

#include "base/clock.h"
#include "base/operator.h"
#include "base/resource.h"
#include "controller/manager.h"
#include "kube/client.h"
#include "testing/server.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct stw_test;

struct stw_test_config {
    const struct stw_operator *op; /* borrowed until the end */
    /* Served besides the operator's kinds, what they watch, and the common resources of Kubernetes
     * (kube/resource.h); ended by NULL; or NULL.  What a watch calls optional is served only if it is here. */
    const struct stw_resource *const *resources;
    const char *const *namespaces; /* as of the manager; or NULL: all */
    uint32_t workers;              /* of each kind; 0: 4 */
    uint32_t wait_ms;              /* the deadline of each wait, in real time; 0: 10000 */
    bool no_webhooks; /* objects are stored as they are, as while the webhooks are down */
    const struct stw_product *product; /* as of the manager; or NULL */
    /* Called with what went wrong; it may leave by longjmp, as cmocka's fail_msg() does.  NULL: prints the
     * text and aborts. */
    void (*fail)(const char *text);
};

/* Starts the server.  The manager starts at the first stw_test_settle(), so that objects can be there
 * before.  The caller ends it. */
struct stw_test *stw_test_begin(const struct stw_test_config *config);
/* Stops all and frees what the test got.  NULL is allowed. */
void stw_test_end(struct stw_test *t);

/* --- objects */

/* Creates or replaces an object, as another client does; with its status, if it has one.  Takes the reference,
 * so that json_pack() can be the argument.  metadata.namespace is "default" if it is missing. */
bool stw_test_put(struct stw_test *t, json_t *object);
/* The same, but it must be refused; returns the message, which lives until the end of the test. */
const char *stw_test_refused(struct stw_test *t, json_t *object);
/* The object as it is now; borrowed until the end of the test; NULL, without a failure: there is none. */
const json_t *stw_test_get(struct stw_test *t, const struct stw_resource *r, const char *key);
/* A text of it, such as "data.message" or "status.url"; a number or boolean as JSON; "": there is none.  Lives until
 * the end of the test. */
const char *stw_test_text(struct stw_test *t, const struct stw_resource *r, const char *key,
                          const char *path);
/* The status of a condition, "True", "False" or "Unknown"; "": there is none. */
const char *stw_test_condition(struct stw_test *t, const struct stw_resource *r, const char *key,
                               const char *type);
/* Deletes an object, as another client does; false, with a failure: there is none. */
bool stw_test_delete(struct stw_test *t, const struct stw_resource *r, const char *key);

/* --- time */

/* Waits until nothing is left to do at the present time: the caches have seen all changes, no run is ready or under
 * way, none is due within a second, and all events were written.  Time passes for retries that are due within
 * a second. */
bool stw_test_settle(struct stw_test *t);
/* Lets time pass for the operator, as its clock shows it, and settles.  At most ten days.  The resync of all
 * objects keeps to real time. */
bool stw_test_advance(struct stw_test *t, uint64_t ms);
/* Stops the manager, and starts another one as a new process would have it: with empty caches. */
bool stw_test_restart(struct stw_test *t);

/* --- requests and failures: server.h has more */

/* How many requests fit, such as {.verb = "write"} since the begin or stw_test_forget(). */
size_t stw_test_count(struct stw_test *t, const struct stw_test_request *pattern);
void stw_test_forget(struct stw_test *t);
/* Lets requests fail. */
bool stw_test_fail(struct stw_test *t, const struct stw_test_fault *fault);
/* The note of the newest event with this reason about the object of this name; "": there is none. */
const char *stw_test_event(struct stw_test *t, const char *name, const char *reason);

struct stw_test_server *stw_test_server(struct stw_test *t);
const struct stw_clock *stw_test_clock(struct stw_test *t);
struct stw_client *stw_test_client(struct stw_test *t);
/* NULL before the first stw_test_settle(). */
struct stw_manager *stw_test_manager(struct stw_test *t);

#endif
