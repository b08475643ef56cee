/* SPDX-License-Identifier: Apache-2.0
 *
 * The files that `steward new` writes (src/new), with placeholders such as @KIND@. */
#ifndef STW_CMD_NEW_H
#define STW_CMD_NEW_H

struct stw_new_file {
    const char *name; /* path below src/new without ".in"; NULL ends the table */
    const char *text;
};

extern const struct stw_new_file stw_new_files[];

#endif
