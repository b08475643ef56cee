/* SPDX-License-Identifier: Apache-2.0
 *
 * What makes a program of the framework: its names, its kinds, and what it adds to the commands.
 * Everything that depends on the program comes from this struct, which is passed down.  It is
 * constant and outlives every call that gets it. */
#ifndef STW_BASE_OPERATOR_H
#define STW_BASE_OPERATOR_H

#include <stddef.h>
#include <stdint.h>

struct stw_command;
struct stw_controller;
struct stw_extension;
struct stw_kind;

/* Most of what a program may have; 0: the default. */
struct stw_limits {
    uint32_t controllers;
    uint32_t caches;
    size_t response_bytes; /* of one response of the API server */
};

struct stw_operator {
    const char *name;          /* "steward": labels, field managers "NAME-KIND", names of objects */
    const char *domain;        /* "steward.dev": annotations "DOMAIN/paused", finalizer, Lease */
    const char *metric_prefix; /* of its own metrics, without "_" */
    const char *version, *about;
    const struct stw_kind *const *kinds;             /* ended by NULL */
    const struct stw_controller *const *controllers; /* at the same index; ended by NULL */
    const struct stw_command *const *commands;       /* beside those of every program; or NULL */
    struct stw_limits limits;
    const struct stw_extension *extension; /* operator/extension.h; or NULL */
};

#endif
