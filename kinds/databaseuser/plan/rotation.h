/* SPDX-License-Identifier: Apache-2.0
 *
 * Times of a rotation, and what reads the connection Secret. */
#ifndef STW_KINDS_DATABASEUSER_ROTATION_H
#define STW_KINDS_DATABASEUSER_ROTATION_H

#include "base/clock.h"
#include "controller/verdict.h"

#include <stdbool.h>
#include <stdint.h>

struct dbu;

/* The login that applications read has its password and options, although a right may have failed. */
bool dbu_login_is_done(const struct dbu *d);
/* Until when the status has an older credential valid; INT64_MIN: there is none. */
int64_t dbu_rotation_stored_end_us(const struct dbu *d);
/* Whether the password of the Secret is another than the one that was last set. */
bool dbu_password_is_new(const struct dbu *d);
/* Restarts what reads the connection Secret, while the old credential is valid. */
void dbu_rotation_follow(struct dbu *d);
/* The connection Secret has another credential since this run. */
bool dbu_rotation_begins(const struct dbu *d);
/* The time at which the older credential ends has passed. */
bool dbu_rotation_is_over(const struct dbu *d);
/* When the connection Secret got the credential that it has now; "": unknown. */
void dbu_rotation_published(const struct dbu *d, char ret[STW_TIME_LEN]);
/* The overlap is over, and something that reads the connection Secret has not been restarted. */
bool dbu_rotation_is_stuck(const struct dbu *d);
/* Adds to the message of the condition what is waited for. */
void dbu_rotation_add_readers(const struct dbu *d, struct stw_aspect *a);
/* `in_ms` until the next run, or sooner, to look at what reads the connection Secret. */
uint64_t dbu_rotation_look_again_ms(const struct dbu *d, uint64_t in_ms);
/* After a run: until when the old password stays valid.  false: it is not valid. */
bool dbu_rotation_end(const struct dbu *d, char ret[STW_TIME_LEN], uint64_t *ret_in_ms);

#endif
