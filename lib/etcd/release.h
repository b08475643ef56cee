/* SPDX-License-Identifier: Apache-2.0
 *
 * Everything that depends on the version of etcd, in tables.  tests/e2e/etcdcluster/test_etcd_flags.py compares
 * the options with `etcd --help` of every version that the tests run.
 * Source: etcd's CHANGELOG-3.*.md, its upgrade guides, and the issues that the rows name. */
#ifndef STW_ETCD_RELEASE_H
#define STW_ETCD_RELEASE_H

#include "schema/field/semver.h"

/* Default version of a cluster; it has the fixes of CVE-2026-73500. */
#define STW_ETCD_VERSION "3.6.16"
/* The newest version that the tests run. */
#define STW_ETCD_TESTED "3.7.3"

enum stw_etcd_trait {
    STW_ETCD_LEARNERS,    /* new members join without a vote */
    STW_ETCD_MAINTAINED,  /* gets fixes */
    STW_ETCD_SAFE_ALONE,  /* a single member loses no write that it acknowledged (etcd#14370) */
    STW_ETCD_SAFE_DEFRAG, /* a crash during a defragmentation leaves data consistent (etcd#14685) */
    STW_ETCD_LIVEZ,       /* /livez fails when a member is broken, not when quorum is lost */
    STW_ETCD_FEATURE_GATES,  /* --feature-gates */
    STW_ETCD_NO_EXPERIMENTS, /* no option begins with --experimental- */
    STW_ETCD_UTL,            /* etcdutl restores snapshots; etcdctl did before */
    STW_ETCD_BUMPS,          /* a restore can bump revisions */
    STW_ETCD_CLEAN_LOG,      /* a health check leaves no entry in the log */
    STW_ETCD_CHECKS_LOG,     /* exits when its log has such entries from 3.4 (etcd#20809) */
    STW_ETCD_DOWNGRADES,     /* can go back a minor version once etcd has prepared its data */
    STW_ETCD_TRAITS
};
bool stw_etcd_has(struct stw_semver v, enum stw_etcd_trait trait);

/* Versions that corrupt data (etcd#13766). */
bool stw_etcd_corrupts(struct stw_semver v);

#define STW_ETCD_GATES                                                                             \
    "feature-gates" /* a list option: the value in the spec is joined to steward's */

/* Options that steward passes to every member, named as in its version. */
enum stw_etcd_option {
    STW_ETCD_CORRUPT_CHECK,   /* compares its data with the others' before it serves */
    STW_ETCD_SKIP_CLIENT_SAN, /* for peers: the CA authenticates the client */
    STW_ETCD_OPTIONS
};
const char *stw_etcd_option(struct stw_semver v, enum stw_etcd_option option);

/* The first version of the minor line before `to` from which an upgrade may start or to which a
 * downgrade may lead, and the first one from which an upgrade should start.  Zero when any may. */
struct stw_etcd_step {
    struct stw_semver least, best;
    const char *why; /* what may happen when starting below `best` */
};
struct stw_etcd_step stw_etcd_step_to(struct stw_semver to);

#endif
