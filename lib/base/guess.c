/* SPDX-License-Identifier: Apache-2.0 */
#include "base/guess.h"

#include "base/util.h"

#include <ctype.h>

#define LETTER 4U /* the cost of a letter that is added, missing, another, or swapped */
#define CASE 1U   /* of a letter in the other case */
#define LETTERS_MAX 3U

/* The highest cost at which two words are alike. */
static unsigned find_limit(size_t len)
{
    size_t letters = len / 3;
    return LETTER * (unsigned)STW_MIN(STW_MAX(letters, 1U), LETTERS_MAX) + LETTER - 1;
}

static unsigned cost_of(char a, char b)
{
    if (a == b)
        return 0;
    return tolower((unsigned char)a) == tolower((unsigned char)b) ? CASE : LETTER;
}

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
    return STW_MIN(STW_MIN(a, b), c);
}

/* Optimal string alignment in three rows. */
static unsigned measure_distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
    unsigned rows[3][STW_GUESS_MAX_BYTES + 1];
    unsigned *before = rows[0], *last = rows[1], *now = rows[2];
    for (size_t j = 0; j <= b_len; j++) {
        last[j] = (unsigned)j * LETTER;
        before[j] = 0;
    }
    for (size_t i = 1; i <= a_len; i++) {
        now[0] = (unsigned)i * LETTER;
        for (size_t j = 1; j <= b_len; j++) {
            now[j] = min3(last[j] + LETTER, now[j - 1] + LETTER,
                          last[j - 1] + cost_of(a[i - 1], b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = STW_MIN(now[j], before[j - 2] + LETTER);
        }
        unsigned *unused = before;
        before = last;
        last = now;
        now = unused;
    }
    return last[b_len];
}

void stw_guess_init(struct stw_guess *g, const char *word)
{
    *g = (struct stw_guess){.word = word, .len = strlen(word)};
    g->distance = find_limit(g->len) + 1;
}

void stw_guess_offer(struct stw_guess *g, const char *known)
{
    size_t len = strlen(known);
    size_t more = STW_MAX(len, g->len) - STW_MIN(len, g->len);
    if (g->len < 2 || g->len > STW_GUESS_MAX_BYTES || len > STW_GUESS_MAX_BYTES ||
        more * LETTER >= g->distance)
        return;
    unsigned distance = measure_distance(g->word, g->len, known, len);
    if (distance >= g->distance)
        return;
    g->distance = distance;
    g->best = known;
}
