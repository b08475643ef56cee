/* SPDX-License-Identifier: Apache-2.0
 *
 * What the client of the API server gets instead of an answer from the network: the end of each
 * transfer is replaced at link time.  No request leaves the process. */
#ifndef STW_TESTS_HOSTILE_SERVER_H
#define STW_TESTS_HOSTILE_SERVER_H

#include "base/buf.h"
#include "kube/client.h"

/* Writes the body of an answer, and returns its HTTP status; 0: the connection fails. */
typedef int hostile_answer_fn(void *ctx, const struct stw_request *req, struct stw_buf *body);
struct hostile_server {
    hostile_answer_fn *fn;
    void *ctx;
};
/* Returns the server that answered before. */
struct hostile_server hostile_serve(hostile_answer_fn *fn, void *ctx);

#endif
