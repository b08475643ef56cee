/* SPDX-License-Identifier: Apache-2.0 */
#include "base/guess.h"
#include "base/util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static const char *const known[] = {"replicas", "image",   "imagePullSecrets", "resources",
                                    "env",      "maxSize", "minSize",          NULL};

static const char *guess(const char *word)
{
    struct stw_guess g;
    stw_guess_init(&g, word);
    for (size_t i = 0; known[i]; i++)
        stw_guess_offer(&g, known[i]);
    return g.best;
}

static void test_guess_finds_the_nearest_word(void **state)
{
    static const struct {
        const char *word, *want; /* NULL: nothing is like it */
    } rows[] = {
        {"replica", "replicas"},
        {"Replicas", "replicas"},
        {"REPLICAS", "replicas"},
        {"repilcas", "replicas"},
        {"relpicsa", "replicas"},
        {"imagePullSecret", "imagePullSecrets"},
        {"imgae", "image"},
        {"resource", "resources"},
        {"envs", "env"},
        {"nev", "env"},
        {"maxsize", "maxSize"},
        {"minSise", "minSize"},
        {"colour", NULL},
        {"", NULL},
        {"x", NULL},
        {"e", NULL},
        {"xyz", NULL},
        {"imagePullPolicyName", NULL},
        {"\xc3\xa9nv", NULL},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++)
        if (!stw_same(guess(rows[i].word), rows[i].want))
            fail_msg("%s: %s", rows[i].word, guess(rows[i].word) ? guess(rows[i].word) : "none");
}

static void test_long_words_get_no_guess(void **state)
{
    char word[STW_GUESS_MAX_BYTES + 2], longer[sizeof(word)];
    struct stw_guess g;
    (void)state;
    memset(word, 'a', sizeof(word));
    word[STW_GUESS_MAX_BYTES] = '\0';
    memcpy(longer, word, sizeof(word));
    longer[STW_GUESS_MAX_BYTES] = 'a';
    longer[STW_GUESS_MAX_BYTES + 1] = '\0';
    stw_guess_init(&g, word);
    stw_guess_offer(&g, longer);
    assert_null(g.best);
    word[0] = 'b';
    longer[STW_GUESS_MAX_BYTES] = '\0';
    stw_guess_offer(&g, longer); /* the longest that is compared */
    assert_ptr_equal(g.best, longer);
    longer[STW_GUESS_MAX_BYTES] = 'a';
    stw_guess_init(&g, longer);
    stw_guess_offer(&g, word);
    assert_null(g.best);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_guess_finds_the_nearest_word),
        cmocka_unit_test(test_long_words_get_no_guess),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
