/* SPDX-License-Identifier: Apache-2.0
 *
 * Allocations that fail when a test wants it.  The linker redirects those of our libraries to this
 * file: one source file of a test includes it, and its executable is linked with `wraps`. */
#ifndef STW_TESTS_SUPPORT_REFUSE_H
#define STW_TESTS_SUPPORT_REFUSE_H

#include <stdbool.h>
#include <stddef.h>

static long left = -1; /* allocations until one fails; negative: none does */
static bool all_after; /* whether all after that one fail, too */

static bool refuse(void)
{
    bool now = left == 0;
    if (left > 0 || (now && !all_after))
        left--;
    return now;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_reallocarray(void *p, size_t count, size_t size);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t len);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_reallocarray(void *p, size_t count, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t len);

void *__wrap_malloc(size_t size)
{
    return refuse() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return refuse() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *p, size_t size)
{
    return refuse() ? NULL : __real_realloc(p, size);
}

void *__wrap_reallocarray(void *p, size_t count, size_t size)
{
    return refuse() ? NULL : __real_reallocarray(p, count, size);
}

char *__wrap_strdup(const char *text)
{
    return refuse() ? NULL : __real_strdup(text);
}

char *__wrap_strndup(const char *text, size_t len)
{
    return refuse() ? NULL : __real_strndup(text, len);
}

#endif
