/* SPDX-License-Identifier: Apache-2.0
 *
 * RFC 6902 patches of "add" operations, base64-encoded for an AdmissionReview. */
#ifndef STW_WEBHOOK_PATCH_H
#define STW_WEBHOOK_PATCH_H

#include "base/buf.h"

struct stw_patch {
    struct stw_buf ops; /* "[{...},{...}" without the closing bracket */
    unsigned count;
};

void stw_patch_init(struct stw_patch *p);
void stw_patch_done(struct stw_patch *p);
void stw_patch_add(struct stw_patch *p, const char *pointer, const char *json);
/* Appends the base64 of the whole array. Nothing if it has no operation. */
void stw_patch_base64(const struct stw_patch *p, struct stw_buf *out);

#endif
