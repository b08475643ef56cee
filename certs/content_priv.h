/* SPDX-License-Identifier: Apache-2.0
 *
 * The Secret: its keys as strings, and the JSON of an update that keeps everything that is not
 * ours.  The type is kubernetes.io/tls, so that tls.crt and tls.key have their usual meaning. */
#ifndef STW_CERTS_CONTENT_PRIV_H
#define STW_CERTS_CONTENT_PRIV_H

#include "base/buf.h"
#include "base/error.h"
#include "base/operator.h"
#include "base/util.h"

#include <stdbool.h>
#include <stddef.h>

enum stw_slot {
    STW_SLOT_TLS_CRT, /* the leaf that serves */
    STW_SLOT_TLS_KEY,
    STW_SLOT_CA_CRT, /* the CA that signed it */
    STW_SLOT_CA_KEY,
    STW_SLOT_NEXT_CRT, /* its successor, during a rotation */
    STW_SLOT_NEXT_KEY,
    STW_SLOT_OLD_CRT,   /* its predecessors, while the bundle still contains them */
    STW_SLOT_OLD_UNTIL, /* the end of that time: RFC 3339 */
    STW_SLOTS,
};
extern const char *const stw_slot_names[STW_SLOTS];

#define STW_SECRET_MAX_BYTES ((size_t)2 * 1024 * 1024) /* etcd's limit is lower */

struct stw_content {
    bool exists;
    bool foreign; /* another controller (cert-manager) manages this Secret */
    char rv[64];
    char *slot[STW_SLOTS]; /* NULL: absent, empty, or not base64 */
};

void stw_content_done(struct stw_content *c); /* wipes */
/* Stores `value` in a slot, which owns it and wipes it at the end. */
void stw_content_set(struct stw_content *c, enum stw_slot slot, char *value);
/* Moves one slot's value to another. */
void stw_content_move(struct stw_content *c, enum stw_slot from, enum stw_slot to);

/* Reads the JSON of a Secret.  Invalid data is not an error: its slot stays empty. */
int stw_content_read(const char *json, size_t len, struct stw_content *ret,
                     struct stw_error *err) STW_MUST_CHECK;
/* Writes the JSON of the Secret for a create (`was` is NULL) or for an update of `was`.  `out`
 * should be secret. */
int stw_content_write(const struct stw_operator *op, const struct stw_content *c, const char *ns,
                      const char *name, const struct stw_buf *was, struct stw_buf *out,
                      struct stw_error *err) STW_MUST_CHECK;

#endif
