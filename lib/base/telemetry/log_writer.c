/* SPDX-License-Identifier: Apache-2.0
 *
 * Two buffers: threads append lines to one while the writer writes the other.  When the writer is
 * done with its own, it swaps them.  After the first line that does not fit, all are dropped until
 * the swap, so that the order is kept and the gap is in one place.
 *
 * The handler of fatal signals takes no lock: the thread that crashed may hold it.  It stops the
 * writer before its next line, and reads lengths that only grow. */
#include "base/telemetry/log_writer.h"

#include "base/clock.h"
#include "base/telemetry/log_priv.h"
#include "base/thread.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#define BUFFER_BYTES ((size_t)512 << 10)
#define STACK_BYTES ((size_t)128 << 10)
#define CRASH_MS 1000
#define PIPE_PIECE ((size_t)4096) /* PIPE_BUF: a pipe that polls as writable has room for it */

struct buffer {
    char data[BUFFER_BYTES];
    _Atomic size_t len;
    _Atomic size_t done; /* of these, written */
};

static struct buffer buffers[2];

static struct {
    pthread_mutex_t lock;
    pthread_cond_t more, ended_cond;
    pthread_t thread;
    bool started, stopping, ended;    /* lock; `started`: of the thread that starts and stops */
    uint64_t lost;                    /* lock: lines that no line has reported yet */
    _Atomic(struct buffer *) filling; /* lock; the other one is the writer's */
    _Atomic bool on;                  /* changed with the lock held */
    _Atomic bool writing, crashed;
    _Atomic uint64_t dropped;
} writer = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const int fatal[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
static struct sigaction former[STW_COUNT(fatal)];

static struct buffer *other_buffer(const struct buffer *b)
{
    return b == &buffers[0] ? &buffers[1] : &buffers[0];
}

/* With the lock held. */
static void append_line(const struct stw_log_line *l)
{
    struct buffer *b = atomic_load(&writer.filling);
    size_t len = atomic_load(&b->len);
    if (writer.lost > 0 || l->len > sizeof(b->data) - len) {
        writer.lost++;
        atomic_fetch_add(&writer.dropped, 1);
        return;
    }
    memcpy(b->data + len, l->data, l->len);
    atomic_store(&b->len, len + l->len);
    if (len == 0)
        (void)pthread_cond_signal(&writer.more);
}

uint64_t stw_log_dropped(void)
{
    return atomic_load(&writer.dropped);
}

/* --- the writer's thread */

/* False: the handler of a fatal signal writes the rest. */
static bool go_on(void)
{
    atomic_store(&writer.writing, true);
    if (!atomic_load(&writer.crashed))
        return true;
    atomic_store(&writer.writing, false);
    return false;
}

/* One write(2) for each line.  Returns the number of lines that could not be written. */
static uint64_t write_buffer(struct buffer *b)
{
    uint64_t failed = 0;
    size_t len = atomic_load(&b->len), done = 0;
    while (done < len && go_on()) {
        const char *end = memchr(b->data + done, '\n', len - done);
        assert(end);
        size_t line = (size_t)(end + 1 - (b->data + done));
        failed += !stw_log_put(b->data + done, line);
        done += line;
        atomic_store(&b->done, done);
        atomic_store(&writer.writing, false);
    }
    return failed;
}

static void report_lost(uint64_t lines)
{
    struct stw_log_line l;
    const struct stw_log_field fields[] = {STW_INT("lines", lines), {0}};
    stw_log_line_build(&l, STW_LOG_WARN,
                       "log lines were dropped: they could not be written in time", fields);
    if (go_on())
        (void)stw_log_put(l.data, l.len);
    atomic_store(&writer.writing, false);
}

/* With the lock held: the buffer with new lines becomes the writer's. */
static struct buffer *swap_buffers(void)
{
    struct buffer *full = atomic_load(&writer.filling), *empty = other_buffer(full);
    atomic_store(&empty->len, 0);
    atomic_store(&empty->done, 0);
    atomic_store(&writer.filling, empty);
    return full;
}

static void *run_writer(void *arg)
{
    (void)arg;
    (void)pthread_mutex_lock(&writer.lock);
    for (;;) {
        while (atomic_load(&atomic_load(&writer.filling)->len) == 0 && !writer.stopping)
            (void)pthread_cond_wait(&writer.more, &writer.lock);
        if (atomic_load(&atomic_load(&writer.filling)->len) == 0 || !go_on())
            break;
        struct buffer *b = swap_buffers();
        uint64_t lost = writer.lost;
        writer.lost = 0;
        (void)pthread_mutex_unlock(&writer.lock);
        uint64_t failed = write_buffer(b);
        if (lost + failed > 0)
            report_lost(lost + failed);
        atomic_fetch_add(&writer.dropped, failed);
        (void)pthread_mutex_lock(&writer.lock);
    }
    writer.ended = true;
    atomic_store(&writer.on, atomic_load(&writer.crashed));
    (void)pthread_cond_signal(&writer.ended_cond);
    (void)pthread_mutex_unlock(&writer.lock);
    return NULL;
}

/* --- without the thread: before it starts, and when the process crashes */

/* Async-signal-safe.  Writes only when that does not block. */
static void write_within(struct buffer *b, uint64_t deadline_ms)
{
    struct pollfd p = {.fd = stw_log_fd(), .events = POLLOUT};
    size_t len = atomic_load(&b->len), done = atomic_load(&b->done);
    while (done < len) {
        uint64_t now = stw_now_ms(&stw_clock_system);
        if (now >= deadline_ms || poll(&p, 1, (int)(deadline_ms - now)) <= 0)
            return;
        ssize_t n = write(p.fd, b->data + done, STW_MIN(len - done, PIPE_PIECE));
        if (n <= 0)
            return;
        done += (size_t)n;
        atomic_store(&b->done, done);
    }
}

static void write_rest(uint64_t deadline_ms)
{
    struct buffer *filling = atomic_load(&writer.filling);
    write_within(other_buffer(filling), deadline_ms);
    write_within(filling, deadline_ms);
}

/* The former handler then does its work: a fault happens again, a signal that was sent is raised
 * again. */
static void write_on_crash(int number, siginfo_t *info, void *context)
{
    uint64_t deadline = stw_now_ms(&stw_clock_system) + CRASH_MS;
    (void)context;
    atomic_store(&writer.crashed, true);
    while (atomic_load(&writer.writing) && stw_now_ms(&stw_clock_system) < deadline)
        (void)poll(NULL, 0, 1);
    if (!atomic_load(&writer.writing))
        write_rest(deadline);
    for (size_t i = 0; i < STW_COUNT(fatal); i++)
        if (fatal[i] == number)
            (void)sigaction(number, &former[i], NULL);
    if (info->si_code <= 0)
        (void)raise(number);
}

/* --- start and stop */

void stw_log_writer_prepare(void)
{
    struct sigaction on_crash = {.sa_sigaction = write_on_crash, .sa_flags = SA_SIGINFO};
    assert(!atomic_load(&writer.on));
    sigemptyset(&on_crash.sa_mask);
    (void)pthread_cond_init(&writer.more, NULL);
    (void)stw_cond_init(&writer.ended_cond);
    writer.started = writer.stopping = writer.ended = false;
    writer.lost = 0;
    for (size_t i = 0; i < STW_COUNT(buffers); i++) {
        atomic_store(&buffers[i].len, 0);
        atomic_store(&buffers[i].done, 0);
    }
    atomic_store(&writer.filling, &buffers[0]);
    for (size_t i = 0; i < STW_COUNT(fatal); i++)
        (void)sigaction(fatal[i], &on_crash, &former[i]);
    atomic_store(&writer.on, true);
}

int stw_log_writer_start(struct stw_error *err)
{
    assert(atomic_load(&writer.on) && !writer.started);
    if (stw_thread_start(&writer.thread, "log", STACK_BYTES, run_writer, NULL, err) != 0)
        return -1;
    writer.started = true;
    return 0;
}

static bool wait_for_end(uint64_t deadline_ms)
{
    STW_LOCKED(&writer.lock);
    writer.stopping = true;
    (void)pthread_cond_signal(&writer.more);
    while (!writer.ended && stw_now_ms(&stw_clock_system) < deadline_ms)
        stw_cond_wait_until(&writer.ended_cond, &writer.lock, deadline_ms);
    return writer.ended;
}

void stw_log_writer_stop(uint32_t timeout_ms)
{
    uint64_t deadline = stw_now_ms(&stw_clock_system) + timeout_ms;
    if (!atomic_load(&writer.on))
        return;
    if (!writer.started) {
        write_rest(deadline);
        atomic_store(&writer.on, false);
    } else if (wait_for_end(deadline)) {
        (void)pthread_join(writer.thread, NULL);
    } else {
        (void)pthread_detach(writer.thread); /* it ends with the process */
        return;
    }
    for (size_t i = 0; i < STW_COUNT(fatal); i++)
        (void)sigaction(fatal[i], &former[i], NULL);
}

/* --- a line of any thread */

/* False: there is no writer, the caller has to write. */
static bool take_line(const struct stw_log_line *l)
{
    if (!atomic_load(&writer.on))
        return false;
    STW_LOCKED(&writer.lock);
    bool on = atomic_load(&writer.on);
    if (on)
        append_line(l);
    return on;
}

void stw_log_write(enum stw_log_level level, const char *msg, const struct stw_log_field *fields)
{
    int saved = errno;
    struct stw_log_line l;
    stw_log_line_build(&l, level, msg, fields);
    if (!take_line(&l))
        (void)stw_log_put(l.data, l.len); /* a failure cannot be reported anywhere */
    errno = saved;
}
