/* SPDX-License-Identifier: Apache-2.0
 *
 * Conflicts over the account. */
#ifndef STW_KINDS_DATABASEUSER_CLAIMS_H
#define STW_KINDS_DATABASEUSER_CLAIMS_H

struct dbu;

/* Sets d->claim and d->holder. */
void dbu_claim(struct dbu *d);

#endif
