/* SPDX-License-Identifier: Apache-2.0
 *
 * In which versions objects of a kind are stored, as status.storedVersions of its CRD says. */
#ifndef STW_OPERATOR_STORED_VERSIONS_H
#define STW_OPERATOR_STORED_VERSIONS_H

#include "base/buf.h"
#include "base/json.h"

struct stw_stored {
    char now[64];  /* what new objects are stored as: "v1"; "": unknown */
    char old[256]; /* as what older objects may still be stored: "v1alpha1, v1beta1"; "": none */
};

void stw_stored_read(struct stw_json crd, struct stw_stored *ret);

#endif
