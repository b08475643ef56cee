/* SPDX-License-Identifier: Apache-2.0
 *
 * Objects through the reconciler of their kind, with hostile children in its caches and an API server
 * that fails or answers with anything. */
#ifndef STW_TESTS_HOSTILE_RUNS_H
#define STW_TESTS_HOSTILE_RUNS_H

#include "base/buf.h"
#include "hostile/cases.h"
#include "schema/kind.h"

struct hostile_runs;

/* `sample` writes a valid object of any kind. */
struct hostile_runs *hostile_runs_create(const struct stw_kind *k, struct hostile_cases *cases,
                                         void (*sample)(const struct stw_kind *k,
                                                        struct stw_buf *out));
void hostile_runs_destroy(struct hostile_runs *s);
void hostile_run(struct hostile_runs *s, uint32_t number, const struct stw_buf *object);
/* How many runs sent a request besides that for the status: the object had passed its checks. */
uint32_t hostile_runs_whole(const struct hostile_runs *s);

#endif
