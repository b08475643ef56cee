/* SPDX-License-Identifier: Apache-2.0
 *
 * All that depends on the version of etcd, in one table.  tests/e2e/test_etcd_flags.py compares the
 * options with `etcd --help` of every version that the tests run.
 * Source: etcd's CHANGELOG-3.*.md, its upgrade guides, and the issues that the rows name. */
#ifndef STW_KINDS_ETCD_RELEASE_H
#define STW_KINDS_ETCD_RELEASE_H

#include "kinds/semver.h"

/* Of a cluster that names none; with the fixes of CVE-2026-73500. */
#define STW_ETCD_VERSION "3.6.16"
/* The newest one that the tests run. */
#define STW_ETCD_TESTED "3.7.3"

enum stw_etcd_trait {
    STW_ETCD_LEARNERS,       /* new members join without a vote */
    STW_ETCD_MAINTAINED,     /* gets fixes */
    STW_ETCD_SAFE_ALONE,     /* a lone member loses no write that it acknowledged (etcd#14370) */
    STW_ETCD_LIVEZ,          /* /livez fails when a member is broken, not when the quorum is away */
    STW_ETCD_FEATURE_GATES,  /* --feature-gates */
    STW_ETCD_NO_EXPERIMENTS, /* no option begins with --experimental- */
    STW_ETCD_UTL,            /* etcdutl restores snapshots; etcdctl did before */
    STW_ETCD_BUMPS,          /* a restore can move revisions on */
    STW_ETCD_CLEAN_LOG,      /* a question for its health leaves nothing in the log */
    STW_ETCD_CHECKS_LOG,     /* ends when its log has such questions of 3.4 (etcd#20809) */
    STW_ETCD_DOWNGRADES,     /* back to the line before, once etcd has prepared its data for it */
};
bool stw_etcd_has(struct stw_semver v, enum stw_etcd_trait trait);

/* Versions that corrupt data (etcd#13766). */
bool stw_etcd_corrupts(struct stw_semver v);

#define STW_ETCD_GATES                                                                             \
    "feature-gates" /* an option that takes a list: the spec's is joined to ours */

/* What steward gives to every member, in the words of its version. */
enum stw_etcd_option {
    STW_ETCD_CORRUPT_CHECK,   /* compares its data with the others' before it serves */
    STW_ETCD_SKIP_CLIENT_SAN, /* of peers: who dials is known by the CA */
};
const char *stw_etcd_option(struct stw_semver v, enum stw_etcd_option option);

/* The first version of the line before `to` that an upgrade to it may begin from, or a downgrade
 * may lead to, and the first one that an upgrade should begin from; zero when any may. */
struct stw_etcd_step {
    struct stw_semver least, best;
    const char *why; /* what may happen from below `best` */
};
struct stw_etcd_step stw_etcd_step_to(struct stw_semver to);

#endif
