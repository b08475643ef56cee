/* SPDX-License-Identifier: Apache-2.0
 *
 * The workload of an Eru: its key, its index, and what its object says. */
#ifndef STW_KINDS_ERU_WORKLOADS_H
#define STW_KINDS_ERU_WORKLOADS_H

#include "base/json.h"
#include "base/util.h"
#include "kube/resource.h"

struct eru;
struct eru_target;
struct eru_workload;

/* The key "namespace/name" of the workload, and its entry in the index of Erus.  An Eru with a
 * selector has an entry of its own, which is in no index. */
void eru_workload_key(const struct eru *e, char out[STW_KEY_LEN]);
#define ERU_INDEX_LEN (16 + STW_KEY_LEN)
void eru_workload_index(const struct eru *e, char out[ERU_INDEX_LEN]);
void eru_index_text(const struct eru_workload *workload, const char *key, char out[ERU_INDEX_LEN]);
void eru_index_selector(const char *eru, char out[ERU_INDEX_LEN]);
int eru_target_read(const struct eru_workload *workload, struct stw_json object,
                    struct eru_target *ret);

#endif
