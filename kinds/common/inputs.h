/* SPDX-License-Identifier: Apache-2.0
 *
 * The ConfigMaps and Secrets that the pods of a template read, by name. */
#ifndef STW_KINDS_COMMON_INPUTS_H
#define STW_KINDS_COMMON_INPUTS_H

#include "base/json.h"

#include <stddef.h>

#define STW_INPUTS_MAX 100 /* objects of one template that are compared */

/* Names of the objects, each once and sorted.  Zeroed before use. */
struct stw_inputs {
    struct stw_input {
        char *name;    /* "configmap:NAME", "secret:NAME" */
        bool required; /* without the object no pod starts */
    } all[STW_INPUTS_MAX];
    size_t count;
    bool more;   /* there are more than STW_INPUTS_MAX */
    bool failed; /* out of memory */
};

/* Adds what a pod spec reads: env, envFrom and volumes, also projected ones. */
void stw_inputs_add_pod(struct stw_inputs *i, struct stw_json pod_spec);
/* Adds what a list of environment variables reads. */
void stw_inputs_add_env(struct stw_inputs *i, struct stw_json env);
/* Adds one Secret that is required.  What cannot be the name of an object is skipped. */
void stw_inputs_add_secret(struct stw_inputs *i, struct stw_json name);
void stw_inputs_done(struct stw_inputs *i);

static inline bool stw_input_is_secret(const struct stw_input *input)
{
    return *input->name == 's';
}
/* The name of the object, without its kind; borrowed. */
const char *stw_input_name(const struct stw_input *input);

#endif
