/* SPDX-License-Identifier: Apache-2.0
 *
 * The list (list.c), what a registry wants before it answers (challenge.c), requests (ask.c), and
 * what is remembered of their answers (memory.c). */
#ifndef STW_REGISTRY_REGISTRY_PRIV_H
#define STW_REGISTRY_REGISTRY_PRIV_H

#include "base/thread.h"
#include "registry/registry.h"

#include <curl/curl.h>

#define REGISTRY_MAX 50  /* entries of the list */
#define REGISTRY_KEPT 64 /* answers that are remembered, of each */
#define REGISTRY_KEEP_MS 60000
#define REGISTRY_URL_LEN 2048

struct registry_answer {
    char path[STW_IMAGE_PATH_LEN], tag[STW_IMAGE_TAG_LEN];
    int64_t round;
    uint64_t until_ms;           /* 0: a free place */
    char digest[STW_DIGEST_LEN]; /* "": the error */
    enum stw_err code;
    char text[200];
};

struct stw_registry {
    char name[STW_IMAGE_DOMAIN_LEN];        /* domain of images; "": those without one */
    char origin[STW_IMAGE_DOMAIN_LEN + 16]; /* "https://HOST[:PORT]" */
    bool by_default;                        /* the origin of images without a domain */
    /* One thread at a time is in what follows, and makes requests.  A registry that is silent delays
     * no question to another one. */
    pthread_mutex_t lock; /* over `busy` */
    pthread_cond_t free;
    bool busy;
    CURL *easy;
    struct registry_answer answers[REGISTRY_KEPT];
    size_t next; /* place of the next answer */
    /* It could not be reached in this round, until this time; 0: it could. */
    int64_t down_round;
    uint64_t down_until_ms;
    char down_text[200];
};

/* Constant after its creation, except what a lock protects. */
struct stw_registries {
    struct stw_registry all[REGISTRY_MAX];
    size_t count;
};

/* --- challenge.c */
struct registry_challenge {
    char realm[1024], service[256]; /* "": none */
};
/* Reads the value of a WWW-Authenticate header.  Returns -1 unless it is of the scheme Bearer, with a
 * realm. */
int registry_challenge_parse(const char *value, struct registry_challenge *ret) STW_MUST_CHECK;
/* The URL of a token for reading `path`.  -1 unless the realm is at one of the listed origins; so it
 * is HTTPS, except where the administrator has listed HTTP. */
int registry_token_url(const struct stw_registries *r, const struct registry_challenge *c,
                       const char *path, char out[REGISTRY_URL_LEN]) STW_MUST_CHECK;
/* The token in the answer of that server.  -1: there is none that could be a header. */
#define REGISTRY_TOKEN_LEN 16384
int registry_token_parse(const char *text, size_t len, char out[REGISTRY_TOKEN_LEN]) STW_MUST_CHECK;

/* --- ask.c: by the thread that is in the tag's registry */
int registry_ask(const struct stw_registries *r, const struct stw_image_tag *tag,
                 uint64_t deadline_ms, char out[STW_DIGEST_LEN],
                 struct stw_error *err) STW_MUST_CHECK;

#endif
