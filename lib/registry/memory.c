/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers of a round: many workloads with one image cost one question, and a registry that does not
 * answer delays one of them. */
#include "base/clock.h"
#include "registry/registry_priv.h"

static struct registry_answer *find_answer(const struct stw_image_tag *tag, int64_t round,
                                           uint64_t now_ms)
{
    for (size_t i = 0; i < REGISTRY_KEPT; i++) {
        struct registry_answer *a = &tag->registry->answers[i];
        if (a->round == round && a->until_ms > now_ms && stw_streq(a->path, tag->path) &&
            stw_streq(a->tag, tag->tag))
            return a;
    }
    return NULL;
}

static int repeat_answer(const struct registry_answer *a, char out[STW_DIGEST_LEN],
                         struct stw_error *err)
{
    if (!*a->digest)
        return stw_fail(err, a->code, "%s", a->text);
    stw_format(out, STW_DIGEST_LEN, "%s", a->digest);
    return 0;
}

static void keep_answer(const struct stw_image_tag *tag, int64_t round, const char *digest,
                        const struct stw_error *err)
{
    struct stw_registry *one = tag->registry;
    struct registry_answer *a = &one->answers[one->next];
    one->next = (one->next + 1) % REGISTRY_KEPT;
    *a = (struct registry_answer){.round = round,
                                  .until_ms = stw_now_ms(&stw_clock_system) + REGISTRY_KEEP_MS,
                                  .code = err->code};
    stw_format(a->path, sizeof(a->path), "%s", tag->path);
    stw_format(a->tag, sizeof(a->tag), "%s", tag->tag);
    stw_format(a->digest, sizeof(a->digest), "%s", digest);
    stw_format(a->text, sizeof(a->text), "%.*s", (int)sizeof(a->text) - 1, err->text);
}

static bool is_down(const struct stw_registry *one, int64_t round, uint64_t now_ms)
{
    return one->down_until_ms > now_ms && one->down_round == round;
}

#define PATIENCE_MS 5000 /* a shorter wait says nothing about the registry */

/* Whether it gave no answer at all. */
static bool is_dead(const struct stw_error *why, uint64_t waited_ms)
{
    return (why->code == STW_ERR_UNAVAILABLE && why->http == 0) ||
           (why->code == STW_ERR_TIMEOUT && waited_ms >= PATIENCE_MS);
}

static void mark_down(struct stw_registry *one, int64_t round, const struct stw_error *err)
{
    one->down_round = round;
    one->down_until_ms = stw_now_ms(&stw_clock_system) + REGISTRY_KEEP_MS;
    stw_format(one->down_text, sizeof(one->down_text), "%.*s", (int)sizeof(one->down_text) - 1,
               err->text);
}

/* Entered. */
static int answer(const struct stw_registries *r, const struct stw_image_tag *tag, int64_t round,
                  uint64_t deadline_ms, char out[STW_DIGEST_LEN], struct stw_error *err)
{
    uint64_t now = stw_now_ms(&stw_clock_system);
    const struct registry_answer *kept = find_answer(tag, round, now);
    struct stw_error why = {0};
    if (kept)
        return repeat_answer(kept, out, err);
    if (is_down(tag->registry, round, now))
        return stw_fail(err, STW_ERR_UNAVAILABLE, "%s", tag->registry->down_text);
    out[0] = '\0';
    int rc = registry_ask(r, tag, deadline_ms, out, &why);
    if (rc != 0 && err)
        *err = why;
    if (why.code == STW_ERR_CANCELLED || why.code == STW_ERR_INTERNAL)
        return rc;
    if (is_dead(&why, stw_now_ms(&stw_clock_system) - now))
        mark_down(tag->registry, round, &why);
    else if (why.code != STW_ERR_TIMEOUT)
        keep_answer(tag, round, out, &why);
    return rc;
}

static bool enter_registry(struct stw_registry *one, uint64_t deadline_ms)
{
    STW_LOCKED(&one->lock);
    while (one->busy && stw_now_ms(&stw_clock_system) < deadline_ms)
        stw_cond_wait_until(&one->free, &one->lock, deadline_ms);
    if (one->busy)
        return false;
    one->busy = true;
    return true;
}

static void leave_registry(struct stw_registry *one)
{
    STW_LOCKED(&one->lock);
    one->busy = false;
    pthread_cond_broadcast(&one->free);
}

int stw_registries_digest(struct stw_registries *r, const struct stw_image_tag *tag, int64_t round,
                          uint64_t deadline_ms, char out[STW_DIGEST_LEN], struct stw_error *err)
{
    if (!enter_registry(tag->registry, deadline_ms))
        return stw_fail(err, STW_ERR_TIMEOUT, "there was no time to ask about %s", tag->path);
    int rc = answer(r, tag, round, deadline_ms, out, err);
    leave_registry(tag->registry);
    return rc;
}
