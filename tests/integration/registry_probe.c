/* SPDX-License-Identifier: Apache-2.0
 *
 * Drives lib/registry against real and played registries, for test_registry.py.
 *
 *     registry_probe LIST [ROUND] IMAGE...
 *
 * Prints one line for each image: its digest, "not asked", or "CODE TEXT" of the error.  ROUND is a
 * number, 1 if there is none; a number between images begins another round. */
#include "base/clock.h"
#include "registry/registry.h"

#include <stdio.h>

#define ASK_MS 10000

static void look_up(struct stw_registries *r, const char *image, int64_t round)
{
    struct stw_image_tag tag;
    struct stw_error err = {0};
    char digest[STW_DIGEST_LEN];
    if (!stw_registries_find(r, image, &tag))
        puts("not asked");
    else if (stw_registries_digest(r, &tag, round, stw_now_ms(&stw_clock_system) + ASK_MS, digest,
                                   &err) == 0)
        puts(digest);
    else
        printf("%s %s\n", stw_err_name(err.code), err.text);
}

int main(int argc, char **argv)
{
    struct stw_registries *r = NULL;
    struct stw_error err = {0};
    int64_t round = 1;
    if (argc < 2 || stw_registries_create(argv[1], &r, &err) != 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    for (int i = 2; i < argc; i++)
        if (stw_parse_int(argv[i], 0, 1000, &round) != 0)
            look_up(r, argv[i], round);
    stw_registries_destroy(r);
    return 0;
}
