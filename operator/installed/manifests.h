/* SPDX-License-Identifier: Apache-2.0
 *
 * The objects of manifests: lists are taken apart, and what Helm says about a document is found. */
#ifndef STW_OPERATOR_MANIFESTS_H
#define STW_OPERATOR_MANIFESTS_H

#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"
#include "base/util.h"

#include <stddef.h>

struct stw_manifest {
    struct stw_json object;
    const char *at; /* prefix of field paths in the document: "items[2].", or "" */
    /* Of the object, or of its list ("MyWebList" has elements of kind MyWeb); "" when absent. */
    char api_version[256], kind[128];
};

typedef void stw_manifest_fn(void *ctx, const struct stw_manifest *m);
/* Calls `fn` for the object, or for each element of a list of objects, also of lists in lists.  For an
 * object of another kind that has a list `items`: for both.  -1: lists are nested too deeply. */
int stw_manifest_each(struct stw_json root, stw_manifest_fn *fn, void *ctx,
                      struct stw_error *err) STW_MUST_CHECK;

/* The group of an apiVersion, and its version: "v1" has the group "". */
void stw_manifest_split(const char *api_version, char *group, char *version, size_t size);

/* A text that is read from front to back. */
struct stw_manifest_text {
    const char *text;
    size_t len;
    const char *at; /* where `line` begins; NULL: line 1 */
    size_t line;
    /* Of the last call: several documents may begin on one line. */
    const char *asked;
    char source[256];
};

/* The template that `helm template` names in a comment of the document that starts at `line`:
 * "# Source: chart/templates/web.yaml".  "" when there is none.  `line` only grows from call to call,
 * so that all calls together read the text once. */
void stw_manifest_source(struct stw_manifest_text *t, size_t line, char *out, size_t size);

#endif
