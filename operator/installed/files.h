/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads manifests from files, folders and standard input. */
#ifndef STW_OPERATOR_FILES_H
#define STW_OPERATOR_FILES_H

#include <stdbool.h>
#include <stddef.h>

#define STW_MANIFEST_MAX_BYTES (16u << 20) /* as messages say */

typedef void stw_file_fn(void *ctx, const char *name, const char *text, size_t len);
typedef void stw_file_error_fn(void *ctx, const char *name, const char *why);

/* `path` is a file, "-", a descriptor of this process (/dev/stdin, /dev/fd/N, /proc/self/fd/N), or a
 * folder.  Of a folder, *.yaml, *.yml and *.json are read in order of name, also hidden ones; if
 * `recursive`, including subfolders except .git (64 levels at most; links to folders are not followed).
 * Pipes, sockets and devices, and links to them, are errors without being opened; so is a file above
 * the limit. */
void stw_files_each(const char *path, bool recursive, stw_file_fn *fn, stw_file_error_fn *error,
                    void *ctx);

#endif
