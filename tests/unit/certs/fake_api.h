/* SPDX-License-Identifier: Apache-2.0
 *
 * One Secret and two webhook configurations in memory, with resourceVersions that are checked as
 * the API server checks them.  Calls can be made to fail, and something else to happen just before
 * one. */
#ifndef STW_TESTS_FAKE_API_H
#define STW_TESTS_FAKE_API_H

#include "certs/hooks_priv.h"

#include <jansson.h>

enum fake_object { FAKE_SECRET, FAKE_MUTATING, FAKE_VALIDATING, FAKE_OBJECTS };

struct fake_api {
    json_t *objects[FAKE_OBJECTS]; /* NULL: not there */
    unsigned version;              /* the last one given out */
    unsigned calls, writes;
    /* The call with this number (from 1) fails without effect, or the write with this number has
     * its effect and the answer is lost. */
    unsigned fail_call, fail_write;
    enum stw_err fail_code;
    /* Runs before the call with this number. */
    unsigned intrude_at;
    void (*intrude)(void *ctx);
    /* After each write. */
    void (*wrote)(void *ctx);
    void *ctx;
};

void fake_init(struct fake_api *f);
void fake_done(struct fake_api *f);
/* The objects of another, in the place of ours. */
void fake_copy(struct fake_api *f, const struct fake_api *from);
stw_rota_call_fn fake_call;

/* A configuration of two webhooks, with no caBundle. */
void fake_add_hook(struct fake_api *f, enum fake_object which);
void fake_remove(struct fake_api *f, enum fake_object which);
/* The decoded value of one key of the Secret, the caller's; NULL when there is none. */
char *fake_data(const struct fake_api *f, const char *key);
void fake_set_data(struct fake_api *f, const char *key, const char *value); /* NULL: removes */
/* The decoded caBundle of one webhook; the caller's, "" when there is none. */
char *fake_bundle(const struct fake_api *f, enum fake_object which, size_t index);
void fake_set_bundle(struct fake_api *f, enum fake_object which, const char *value);

#endif
