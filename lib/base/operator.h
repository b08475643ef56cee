/* SPDX-License-Identifier: Apache-2.0
 *
 * What an operator calls itself and what it consists of.  The framework takes every name of its own
 * from here: labels, annotations, field managers, the Lease, metrics.  Nothing of it is global, so
 * one process can run several operators. */
#ifndef STW_BASE_OPERATOR_H
#define STW_BASE_OPERATOR_H

#include "base/buf.h"
#include "base/error.h"
#include "base/util.h"

#include <stddef.h>
#include <stdint.h>

struct stw_command;
struct stw_controller;
struct stw_extension;
struct stw_kind;

/* 0: the default. */
struct stw_limits {
    uint32_t controllers;  /* of one manager; 16 */
    uint32_t caches;       /* of one manager: watched resources; 48 */
    size_t response_bytes; /* of one response of the API server other than a watch; 64 MiB */
};

struct stw_operator {
    /* "steward": the label managed-by, the category of its kinds, the user agent, the field
     * managers "NAME-KIND", and the objects of its own installation "NAME-...". */
    const char *name;
    const char *domain;                  /* "steward.dev": the annotations "DOMAIN/..." */
    const char *metric_prefix;           /* "steward": see stw_metrics_family */
    const char *version;                 /* "1.0.0" */
    const char *about;                   /* what it does, for its help; lines with a newline each */
    const struct stw_kind *const *kinds; /* ended by NULL */
    const struct stw_controller *const
        *controllers; /* of the kind at the same index; ended by NULL */
    const struct stw_command *const
        *commands; /* of its program, in addition; ended by NULL; or NULL */
    struct stw_limits limits;
    const struct stw_extension *extension; /* operator/extension.h; or NULL */
    /* Kinds of the program that this run of it leaves out (--kinds); ended by NULL; or NULL: none. */
    const struct stw_kind *const *others;
};

#define STW_OPERATOR_NAME_MAX 40
#define STW_OPERATOR_DOMAIN_MAX 100
/* Of a name that stw_operator_text makes from the two and up to 160 more bytes. */
#define STW_OWN_NAME_LEN 301

/* "steward/0.1.0", for the servers that it calls. */
#define STW_USER_AGENT_LEN 100
void stw_operator_agent(const struct stw_operator *op, char out[STW_USER_AGENT_LEN]);

/* -1: one of the names cannot be used in Kubernetes or Prometheus. */
int stw_operator_check(const struct stw_operator *op, struct stw_error *err) STW_MUST_CHECK;

/* Replaces "{operator}" by the name and "{domain}" by the domain. */
void stw_operator_expand(const struct stw_operator *op, const char *text, struct stw_buf *out);
/* The same for a name: "{operator}-certs", "{domain}/paused". */
void stw_operator_text(const struct stw_operator *op, const char *text, char out[STW_OWN_NAME_LEN]);

#endif
