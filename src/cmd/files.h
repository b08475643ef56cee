/* SPDX-License-Identifier: Apache-2.0
 *
 * Manifests from files, folders and standard input. */
#ifndef STW_CMD_FILES_H
#define STW_CMD_FILES_H

#include <stddef.h>

#define STW_MANIFEST_MAX_BYTES (16u << 20)

typedef void stw_file_fn(void *ctx, const char *name, const char *text, size_t len);
typedef void stw_file_error_fn(void *ctx, const char *name, const char *why);

/* `path` is a file, "-", or a folder whose *.yaml, *.yml and *.json are given in order of name,
 * folders within it too (64 deep at most; links to folders are not followed). */
void stw_files_each(const char *path, stw_file_fn *fn, stw_file_error_fn *error, void *ctx);

#endif
