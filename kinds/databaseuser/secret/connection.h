/* SPDX-License-Identifier: Apache-2.0
 *
 * The values of a connection Secret: what an application needs to log in, under the keys and in the
 * form that the object asks for.  Pure. */
#ifndef STW_KINDS_DATABASEUSER_CONNECTION_H
#define STW_KINDS_DATABASEUSER_CONNECTION_H

#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"
#include "sql/target/target.h"

#include <jansson.h>

/* The Secret that steward writes for applications. */
struct dbu_spec_connection {
    const char *name;               /* NULL: none */
    struct stw_json keys, template; /* key of the Secret -> name of a value; -> text with values */
    struct stw_json labels, annotations; /* of the Secret, beside steward's */
};

struct dbu_connection_values {
    const struct stw_target *target;
    const char *user, *password;
    const char *database; /* "": none */
    const char *ca;       /* PEM; "": the system's */
};

/* For the row of `template`: what is wrong with a text; NULL: nothing. */
const char *dbu_connection_check_template(const char *text);
/* Names of the values: "host", "port" ...; ended by NULL. */
extern const char *const dbu_connection_names[];

/* Builds the member `data` of the Secret, in base64.  NULL with an error. */
json_t *dbu_connection_data(const struct dbu_connection_values *c,
                            const struct dbu_spec_connection *wanted,
                            struct stw_error *err) STW_MUST_CHECK;

#endif
