/* SPDX-License-Identifier: Apache-2.0
 *
 * The events of a run. */
#ifndef STW_KINDS_DATABASEUSER_EVENTS_H
#define STW_KINDS_DATABASEUSER_EVENTS_H

struct dbu;

void dbu_tell(const struct dbu *d);

#endif
