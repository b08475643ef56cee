/* SPDX-License-Identifier: Apache-2.0
 *
 * The terminal of `top`: the alternate screen, so that the shell's lines return at the end, and keys
 * without Enter.  A signal that ends or stops the program first restores the terminal; handlers call
 * only what is safe in them. */
#include "operator/top/top.h"

#include "base/clock.h"
#include "base/util.h"

#include <errno.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>

#define ENTER "\x1b[?1049h\x1b[?25l"
#define LEAVE "\x1b[?25h\x1b[?1049l"
#define WIDTH_MAX 1000U
#define HEIGHT_MAX 1000U
#define LINES_MAX 1000000

/* Of the process, because signal handlers have no other way. */
static struct {
    struct termios before;
    volatile sig_atomic_t changed, entered, resized;
} top_screen;

static void write_all(const char *text, size_t len)
{
    while (len > 0) {
        ssize_t n = write(STDOUT_FILENO, text, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return;
        text += n;
        len -= (size_t)n;
    }
}

static void enter_terminal(void)
{
    struct termios raw;
    if (tcgetattr(STDIN_FILENO, &top_screen.before) == 0) {
        raw = top_screen.before;
        raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        raw.c_cc[VMIN] = 0;
        raw.c_cc[VTIME] = 0;
        top_screen.changed = tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
    }
    write_all(ENTER, sizeof(ENTER) - 1);
    top_screen.entered = 1;
}

void stw_top_screen_leave(void)
{
    if (!top_screen.entered)
        return;
    top_screen.entered = 0;
    write_all(LEAVE, sizeof(LEAVE) - 1);
    if (top_screen.changed)
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &top_screen.before);
}

static void end_by_signal(int number)
{
    int kept = errno;
    stw_top_screen_leave();
    (void)signal(number, SIG_DFL);
    (void)raise(number); /* it is pending until this handler returns */
    errno = kept;
}

/* ^Z: the shell gets its terminal back, until `fg`. */
static void stop_by_signal(int number)
{
    int kept = errno;
    (void)number;
    stw_top_screen_leave();
    (void)raise(SIGSTOP);
    enter_terminal();
    top_screen.resized = 1;
    errno = kept;
}

static void note_resize(int number)
{
    (void)number;
    top_screen.resized = 1;
}

static void set_handler(int number, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    (void)sigaction(number, &action, NULL);
}

void stw_top_screen_enter(void)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGABRT};
    for (size_t i = 0; i < STW_COUNT(ends); i++)
        set_handler(ends[i], end_by_signal);
    set_handler(SIGTSTP, stop_by_signal);
    set_handler(SIGWINCH, note_resize);
    enter_terminal();
}

/* --- a page */

/* Adds the line at *text, cut to `width`, and moves *text past it. */
static void add_line(const char **text, unsigned width, struct stw_buf *out)
{
    size_t len = strcspn(*text, "\n");
    stw_buf_add(out, *text, stw_top_cut(*text, len, width, NULL));
    stw_buf_adds(out, "\x1b[K\n"); /* the terminal adds "\r" */
    *text += len + ((*text)[len] == '\n');
}

static unsigned count_lines(const char *text)
{
    unsigned n = 0;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

void stw_top_screen_fit(const char *head, const char *page, unsigned width, unsigned height,
                        unsigned *from, struct stw_buf *out)
{
    unsigned lines = count_lines(page), room = height > 2 ? height - 2 : 1;
    *from = STW_MIN(*from, lines > room ? lines - room : 0);
    stw_buf_adds(out, "\x1b[H");
    add_line(&head, width, out);
    for (unsigned i = 0; i < *from; i++)
        page += strcspn(page, "\n") + 1;
    for (unsigned i = *from; i < STW_MIN(lines, *from + room); i++)
        add_line(&page, width, out);
    if (lines > room) {
        char more[96];
        stw_format(more, sizeof(more), "lines %u to %u of %u; arrows, PgUp and PgDn scroll",
                   *from + 1, *from + room, lines);
        stw_buf_add(out, more, STW_MIN(strlen(more), (size_t)width));
    }
    stw_buf_adds(out, "\x1b[J");
}

static void measure_window(unsigned *ret_width, unsigned *ret_height, int *ret_rc)
{
    struct winsize size = {0};
    *ret_rc = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    *ret_width = STW_MIN(size.ws_col ? size.ws_col : 80U, WIDTH_MAX);
    *ret_height = STW_MIN(size.ws_row ? size.ws_row : 24U, HEIGHT_MAX);
}

int stw_top_screen_show(const char *head, const char *page, unsigned *from)
{
    stw_autobuf struct stw_buf out = STW_BUF_INIT(4u << 20);
    unsigned width, height;
    int rc;
    measure_window(&width, &height, &rc);
    if (rc != 0)
        return -1;
    stw_top_screen_fit(head, page, width, height, from, &out);
    write_all(stw_buf_str(&out), out.len);
    return 0;
}

/* As in `less` and `top`. */
enum stw_top_event stw_top_screen_keys(const char *bytes, unsigned page_lines, unsigned *from)
{
    static const struct {
        const char *bytes;
        int lines, pages; /* how far; both 0: another meaning */
        enum stw_top_event event;
    } keys[] = {
        {"q", 0, 0, STW_TOP_QUIT},
        {"Q", 0, 0, STW_TOP_QUIT},
        {"\x04", 0, 0, STW_TOP_QUIT},
        {" ", 0, 0, STW_TOP_NOW},
        {"j", 1, 0, STW_TOP_RESIZED},
        {"\x1b[B", 1, 0, STW_TOP_RESIZED},
        {"\x1bOB", 1, 0, STW_TOP_RESIZED},
        {"k", -1, 0, STW_TOP_RESIZED},
        {"\x1b[A", -1, 0, STW_TOP_RESIZED},
        {"\x1bOA", -1, 0, STW_TOP_RESIZED},
        {"\x1b[6~", 0, 1, STW_TOP_RESIZED},
        {"\x06", 0, 1, STW_TOP_RESIZED},
        {"\x1b[5~", 0, -1, STW_TOP_RESIZED},
        {"\x02", 0, -1, STW_TOP_RESIZED},
        {"g", -LINES_MAX, 0, STW_TOP_RESIZED},
        {"\x1b[H", -LINES_MAX, 0, STW_TOP_RESIZED},
        {"G", LINES_MAX, 0, STW_TOP_RESIZED},
        {"\x1b[F", LINES_MAX, 0, STW_TOP_RESIZED},
    };
    enum stw_top_event event = STW_TOP_RESIZED;
    const size_t len = strlen(bytes);
    for (size_t at = 0, used; at < len && event == STW_TOP_RESIZED; at += used) {
        size_t i = 0;
        while (i < STW_COUNT(keys) &&
               strncmp(bytes + at, keys[i].bytes, strlen(keys[i].bytes)) != 0)
            i++;
        used = 1;
        if (i == STW_COUNT(keys))
            continue;
        int64_t to = (int64_t)*from + keys[i].lines + (int64_t)keys[i].pages * page_lines;
        *from = (unsigned)STW_MIN(STW_MAX(to, 0), LINES_MAX);
        event = keys[i].event;
        used = strlen(keys[i].bytes);
    }
    return event;
}

static enum stw_top_event read_key(unsigned *from)
{
    char bytes[64];
    unsigned width, height;
    int rc;
    ssize_t len = read(STDIN_FILENO, bytes, sizeof(bytes) - 1);
    if (len <= 0)
        return STW_TOP_QUIT;
    bytes[len] = '\0';
    measure_window(&width, &height, &rc);
    return stw_top_screen_keys(bytes, height > 3 ? height - 3 : 1, from);
}

/* A signal between the check and ppoll() would be noticed late, so signals are blocked outside of
 * ppoll(). */
enum stw_top_event stw_top_screen_wait(uint64_t ms, unsigned *from)
{
    const uint64_t until = stw_now_ms(&stw_clock_system) + ms;
    enum stw_top_event event = STW_TOP_TIME;
    sigset_t window, old;
    sigemptyset(&window);
    sigaddset(&window, SIGWINCH);
    (void)sigprocmask(SIG_BLOCK, &window, &old);
    for (uint64_t now; event == STW_TOP_TIME && (now = stw_now_ms(&stw_clock_system)) < until;) {
        struct pollfd in = {.fd = top_screen.changed ? STDIN_FILENO : -1, .events = POLLIN};
        const struct timespec left = {.tv_sec = (time_t)((until - now) / 1000),
                                      .tv_nsec = (long)((until - now) % 1000) * 1000000};
        int n = top_screen.resized ? 0 : ppoll(&in, 1, &left, &old);
        if (top_screen.resized)
            event = STW_TOP_RESIZED;
        else if (n > 0)
            event = read_key(from);
    }
    top_screen.resized = 0;
    (void)sigprocmask(SIG_SETMASK, &old, NULL);
    return event;
}
