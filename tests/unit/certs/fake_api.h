/* SPDX-License-Identifier: Apache-2.0
 *
 * A fake API server with one Secret, two webhook configurations and one CRD in memory.  It checks
 * resourceVersions like the real one.  Calls can be made to fail, and a callback can run just
 * before one. */
#ifndef STW_TESTS_FAKE_API_H
#define STW_TESTS_FAKE_API_H

#include "certs/hooks_priv.h"

#include <jansson.h>

enum fake_object { FAKE_SECRET, FAKE_MUTATING, FAKE_VALIDATING, FAKE_CRD, FAKE_OBJECTS };

struct fake_api {
    json_t *objects[FAKE_OBJECTS]; /* NULL: not there */
    unsigned version;              /* the last one assigned */
    unsigned calls, writes;
    /* The call number fail_call (from 1) fails without effect.  The write number fail_write takes
     * effect, but its response is lost. */
    unsigned fail_call, fail_write;
    enum stw_err fail_code;
    struct stw_error *down; /* every call fails with this; NULL: none */
    /* intrude() runs before the call with this number. */
    unsigned intrude_at;
    void (*intrude)(void *ctx);
    /* Runs after each write. */
    void (*wrote)(void *ctx);
    void *ctx;
};

void fake_init(struct fake_api *f);
void fake_done(struct fake_api *f);
/* Replaces the objects with copies of those of `from`. */
void fake_copy(struct fake_api *f, const struct fake_api *from);
stw_rotation_call_fn fake_call;

/* Those of the first two webhooks of a configuration. */
extern const struct stw_kind *const fake_kinds[];
/* A configuration of two webhooks, and one of another operator, without a caBundle. */
void fake_add_hook(struct fake_api *f, enum fake_object which);
/* A CRD that is converted by a webhook without a caBundle, or by none. */
void fake_add_crd(struct fake_api *f, const char *strategy);
void fake_remove(struct fake_api *f, enum fake_object which);
/* The decoded value of one key of the Secret; the caller frees it.  NULL: there is none. */
char *fake_data(const struct fake_api *f, const char *key);
void fake_set_data(struct fake_api *f, const char *key, const char *value); /* NULL: removes */
/* The decoded caBundle of one webhook, "" when there is none; the caller frees it. */
char *fake_bundle(const struct fake_api *f, enum fake_object which, size_t index);
/* Whether steward owns a field of it. */
bool fake_owned(const struct fake_api *f, enum fake_object which);
void fake_set_bundle(struct fake_api *f, enum fake_object which, const char *value);

#endif
