/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STW_TESTING_SERVER_PRIV_H
#define STW_TESTING_SERVER_PRIV_H

#include "kube/resource.h"
#include "testing/server.h"
#include "testing/store_priv.h"

#include <microhttpd.h>
#include <pthread.h>

#define STW_TEST_BODY_MAX (3u << 20)

struct stw_test_log_entry {
    struct stw_test_request request; /* its strings are owned */
    size_t bytes;
};

#define STW_TEST_LOG_MAX 4096u
#define STW_TEST_LOG_BYTES_MAX (16u << 20)

struct stw_test_watch;

struct stw_test_server {
    struct stw_test_server_config config;
    struct MHD_Daemon *daemon;
    char url[64];
    char version[128]; /* of /version, as JSON */

    pthread_mutex_t lock; /* of all below */
    pthread_cond_t moved; /* a change, a bookmark, a break or the stop */
    struct stw_test_store store;
    bool stopping;
    struct stw_test_watch *watches; /* a list */
    struct stw_test_log_entry *log; /* a ring */
    size_t log_first, log_count, log_bytes;
    uint64_t log_left_out;
    struct stw_test_fault faults[STW_TEST_FAULTS_MAX]; /* their strings are owned */
    size_t fault_count;
};

/* One request and its answer. */
struct stw_test_call {
    const char *method, *verb;
    struct stw_test_type *type; /* NULL: the path names no resource that is served */
    char ns[254], name[254], sub[64], manager[129];
    char key[STW_KEY_LEN];
    const char *content_type;
    const char *labels, *fields, *limit, *next, *version, *timeout; /* of the query */
    bool dry_run, force, watch, bookmarks, metadata_only;
    json_t *body; /* owned */
    unsigned status;
    json_t *answer; /* owned */
};

/* request.c: answers it; the caller holds no lock. */
void stw_test_call_run(struct stw_test_server *s, struct stw_test_call *c);
/* Answers with a metav1.Status. */
void stw_test_call_refuse(struct stw_test_call *c, unsigned status, const char *reason,
                          const char *fmt, ...) __attribute__((format(printf, 4, 5)));
void stw_test_call_refuse_unknown(struct stw_test_call *c);
/* The reason of a status: "NotFound". */
const char *stw_test_reason(unsigned status);
/* Whether an object is in the scope of a list or a watch. */
bool stw_test_call_selects(const struct stw_test_call *c, const json_t *object);
/* The object as this call wants it; owned by the caller. */
json_t *stw_test_call_shown(const struct stw_test_call *c, const json_t *object, bool in_list);

/* watch.c: the response that streams events; NULL: out of memory. */
struct MHD_Response *stw_test_watch_open(struct stw_test_server *s, const struct stw_test_call *c,
                                         struct MHD_Connection *connection);

#endif
