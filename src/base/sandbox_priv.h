/* SPDX-License-Identifier: Apache-2.0
 *
 * The two halves of the sandbox. */
#ifndef STW_BASE_SANDBOX_PRIV_H
#define STW_BASE_SANDBOX_PRIV_H

/* Sanitizers start a symbolizer, and look for leaks from a process that traces this one. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STW_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define STW_SANITIZED 1
#endif
#endif

/* Gives the filter of system calls to this thread and those that it makes.  0, or -1 when the
 * kernel or this machine's architecture has none; no_new_privs must be set. */
int stw_sandbox_filter(void);

#endif
