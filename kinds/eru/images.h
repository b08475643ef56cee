/* SPDX-License-Identifier: Apache-2.0
 *
 * The images that the pods of a workload run. */
#ifndef STW_KINDS_ERU_IMAGES_H
#define STW_KINDS_ERU_IMAGES_H

#include "base/error.h"
#include "base/json.h"
#include "base/util.h"

struct eru;
struct eru_inputs;

/* Fills the members about images.  Blocks for 10 seconds at most.  An image whose digest is not known is
 * no error. */
int eru_images_read(struct eru *e, struct stw_json pod_spec, struct eru_inputs *ret,
                    struct stw_error *err) STW_MUST_CHECK;

#endif
