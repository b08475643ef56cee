/* SPDX-License-Identifier: Apache-2.0
 *
 * Credentials in the format of ~/.aws/credentials:
 *     [default]
 *     aws_access_key_id = ...
 *     aws_secret_access_key = ...
 *     aws_session_token = ...
 */
#ifndef STW_STORE_CREDENTIALS_H
#define STW_STORE_CREDENTIALS_H

#include "base/error.h"
#include "base/util.h"

#include <stddef.h>

#define STW_CREDENTIALS_MAX_BYTES (64u << 10)

struct stw_credentials {
    char access_key[129], secret_key[257];
    char session_token[4097]; /* "" for none */
};

/* `profile` NULL: "default".  Error texts contain no values.  -1: `ret` is wiped. */
int stw_credentials_parse(const char *text, size_t len, const char *profile,
                          struct stw_credentials *ret, struct stw_error *err) STW_MUST_CHECK;
void stw_credentials_wipe(struct stw_credentials *c);

#endif
