/* SPDX-License-Identifier: Apache-2.0
 *
 * The sweep of a target: compares the marks of this cluster on its server with the objects, and reports
 * those of no object, with an event, a log line and a metric.  It drops nothing.
 *
 * A sweep is a run of the controller whose key is of no object, since no namespace has that name.  So only
 * the leader sweeps, one visit to a target at a time, in turns with the objects. */
#ifndef STW_KINDS_DATABASEUSER_SWEEP_H
#define STW_KINDS_DATABASEUSER_SWEEP_H

#include "controller/controller.h"
#include "sql/target/target.h"

struct dbu_sweeps;

/* `namespaces`: those that are managed, borrowed; NULL: all.  NULL: no memory. */
struct dbu_sweeps *dbu_sweeps_create(struct stw_metrics *metrics,
                                     const char *const *namespaces) STW_MUST_CHECK;
void dbu_sweeps_destroy(struct dbu_sweeps *s); /* `s` may be NULL */
/* Another process leads: no gauges until this one has swept again. */
void dbu_sweeps_pause(struct dbu_sweeps *s);

/* Sweeps a target soon: its name, in any case. */
void dbu_sweep_wake(struct stw_manager *m, const char *target);
/* An object that steward has not deleted itself is gone, with this key and UID: what is left of it is reported in
 * its namespace. */
void dbu_sweep_note_gone(struct dbu_sweeps *s, const char *key, const char *uid);
/* A run whose key is not of an object. */
void dbu_sweep(struct stw_run *run, struct stw_result *result);

#endif
