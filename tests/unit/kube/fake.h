/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/support/fake_api.py as a child process of a test, and clients of it. */
#ifndef STW_TESTS_KUBE_FAKE_H
#define STW_TESTS_KUBE_FAKE_H

#include "kube/client.h"

#include <sys/types.h>

struct fake {
    pid_t pid;
    int in;                             /* its standard input: closing it ends the process */
    char server[64];                    /* "http://127.0.0.1:40000" */
    char cert[256], key[256], dir[200]; /* with TLS */
    struct stw_client *control;         /* for steps and the log */
    struct stw_client *client;          /* for most tests: knows only the address */
};

void fake_start(struct fake *f);
/* With a certificate for `name` (a DNS name), issued by openssl; its PEM file is f->cert. */
void fake_start_tls(struct fake *f, const char *name);
void fake_stop(struct fake *f);

/* A server per test, or one for all tests of a table: set-up and tear-down functions for cmocka. */
extern struct fake fake;
int fake_set_up(void **state);
int fake_tear_down(void **state);

void fake_steps(struct fake *f, const char *json); /* ['...'] with ' for " */
void fake_go(struct fake *f, const char *name);
json_t *fake_log(struct fake *f); /* {"requests": [...]}; the caller frees */
/* How many requests so far contain `part` in "METHOD TARGET BODY AUTHORIZATION HOST". */
unsigned fake_count(struct fake *f, const char *part);

extern const struct stw_operator fake_operator; /* of the clients: "steward" */
/* Another client of this server; the caller destroys it.  `config` may be NULL. */
struct stw_client *fake_client_of(struct fake *f, const struct stw_operator *op,
                                  const struct stw_kubeconfig *config, struct stw_metrics *metrics);
struct stw_client *fake_client(struct fake *f, const struct stw_kubeconfig *config,
                               struct stw_metrics *metrics);

/* Polls until the condition holds; fails the test after 40 s. */
#define wait_until(condition)                                                                      \
    do {                                                                                           \
        uint64_t deadline_ = stw_now_ms(&stw_clock_system) + 40000;                                \
        while (!(condition)) {                                                                     \
            if (stw_now_ms(&stw_clock_system) > deadline_)                                         \
                fail_msg("%s:%d: never came: %s", __FILE__, __LINE__, #condition);                 \
            (void)usleep(2000);                                                                    \
        }                                                                                          \
    } while (0)

#endif
