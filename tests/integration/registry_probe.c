/* SPDX-License-Identifier: Apache-2.0
 *
 * Drives lib/registry against real registries and doubles, for test_registry.py.
 *
 *     registry_probe LIST [ROUND] IMAGE...
 *     registry_probe LIST together IMAGE...
 *
 * Prints one line for each image: its digest, "not asked", or "CODE TEXT" of the error.  ROUND is a
 * number, 1 if there is none; a number between images begins another round.  "together": all at once,
 * each on a thread. */
#include "base/clock.h"
#include "base/thread.h"
#include "registry/registry.h"

#include <stdio.h>

#define ASK_MS 10000

#define THREADS_MAX 16

struct question {
    struct stw_registries *r;
    const char *image;
    int64_t round;
    char answer[600];
    pthread_t thread;
};

static void *look_up(void *ctx)
{
    struct question *q = ctx;
    struct stw_image_tag tag;
    struct stw_error err = {0};
    char digest[STW_DIGEST_LEN];
    if (!stw_registries_find(q->r, q->image, &tag))
        stw_format(q->answer, sizeof(q->answer), "not asked");
    else if (stw_registries_digest(q->r, &tag, q->round, stw_now_ms(&stw_clock_system) + ASK_MS,
                                   digest, &err) == 0)
        stw_format(q->answer, sizeof(q->answer), "%s", digest);
    else
        stw_format(q->answer, sizeof(q->answer), "%s %s", stw_err_name(err.code), err.text);
    return NULL;
}

static void ask_together(struct stw_registries *r, char **images, size_t count)
{
    struct question all[THREADS_MAX];
    struct stw_error err = {0};
    count = STW_MIN(count, THREADS_MAX);
    for (size_t i = 0; i < count; i++) {
        all[i] = (struct question){.r = r, .image = images[i], .round = 1};
        if (stw_thread_start(&all[i].thread, "question", 0, look_up, &all[i], &err) != 0)
            abort();
    }
    for (size_t i = 0; i < count; i++) {
        (void)pthread_join(all[i].thread, NULL);
        puts(all[i].answer);
    }
}

static void ask_in_turn(struct stw_registries *r, char **words, size_t count)
{
    struct question q = {.r = r, .round = 1};
    for (size_t i = 0; i < count; i++) {
        if (stw_parse_int(words[i], 0, 1000, &q.round) == 0)
            continue;
        q.image = words[i];
        (void)look_up(&q);
        puts(q.answer);
    }
}

int main(int argc, char **argv)
{
    struct stw_registries *r = NULL;
    struct stw_error err = {0};
    if (argc < 3 || stw_registries_create(argv[1], &r, &err) != 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    if (stw_streq(argv[2], "together"))
        ask_together(r, argv + 3, (size_t)argc - 3);
    else
        ask_in_turn(r, argv + 2, (size_t)argc - 2);
    stw_registries_destroy(r);
    return 0;
}
