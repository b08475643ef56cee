/* SPDX-License-Identifier: Apache-2.0
 *
 * What reads the connection Secret, while two credentials work.  Deployments, StatefulSets and
 * DaemonSets that ask for it with an annotation are restarted, by one annotation of their pod
 * template.  The older credential stays until they have replaced their pods, and until no container
 * is left that has it in its environment.
 *
 * Nothing is watched or remembered: a rotation is rare, and lists the workloads and pods of one
 * namespace.  What was restarted is seen by the annotation, so a run that was killed is continued. */
#ifndef STW_KINDS_DATABASEUSER_READERS_H
#define STW_KINDS_DATABASEUSER_READERS_H

#include "base/json.h"
#include "kinds/common/workloads.h"

#include <stdbool.h>
#include <stddef.h>

struct dbu;

#define DBU_RESTART_ON "{domain}/restart-on"       /* on a workload: names of Secrets */
#define DBU_RESTARTED_FOR "{domain}/restarted-for" /* on its pod template */

/* A list of names, separated by commas or blanks, has this one. */
bool dbu_readers_has_name(const char *list, const char *name);
/* All pods of a workload are of its present template and available; else `ret` has what to do. */
bool dbu_readers_is_rolled_out(const struct stw_resource *resource, struct stw_json workload,
                               char *ret, size_t size);
/* A container of the pod has values of the Secret in its environment, from before `since`. */
bool dbu_readers_has_old_env(struct stw_json pod, const char *secret, const char *since);

/* Restarts and looks, once a run for a credential.  `credential` differs for each one, and is no
 * secret; `since`: when the Secret got it, RFC 3339. */
void dbu_readers_look(struct dbu *d, const char *credential, const char *since);

#endif
