/* SPDX-License-Identifier: Apache-2.0
 *
 * The events of a run. */
#ifndef STW_KINDS_DATABASEUSER_EVENTS_H
#define STW_KINDS_DATABASEUSER_EVENTS_H

struct dbuser;

void dbu_tell(const struct dbuser *d);

#endif
