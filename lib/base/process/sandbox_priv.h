/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by sandbox.c and sandbox_calls.c. */
#ifndef STW_BASE_SANDBOX_PRIV_H
#define STW_BASE_SANDBOX_PRIV_H

/* Sanitizers start a symbolizer, and their leak check traces this process from another one. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STW_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define STW_SANITIZED 1
#endif
#endif

/* Installs the system call filter for this thread and those that it creates.  no_new_privs must be
 * set.  Returns 0, or -1 when the kernel or this architecture does not support it. */
int stw_sandbox_filter(void);

#endif
