/* SPDX-License-Identifier: Apache-2.0
 *
 * How much of a server's answers the client libraries take from a socket.  They keep a message in memory
 * until all of it is there, and have no limit of their own: for a row, an error, a description of columns.
 * They also read as long as something arrives, so that the limit cannot be asked between their calls only:
 * a thread of this module looks at the sockets that are read, and shuts one down that is over it.
 *
 * The kernel counts what has arrived, without what still waits in the socket.  Thread safety: a structure
 * is of one thread. */
#ifndef STW_SQL_INTAKE_H
#define STW_SQL_INTAKE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stw_intake {
    int fd;            /* another one of the same socket, which no library closes; 0: none */
    uint64_t at_start; /* of the statement: all but the rows before it */
    uint64_t rows;     /* bytes in all rows of the connection */
    atomic_uint_fast64_t limit;
    atomic_bool over;                  /* the socket was shut down */
    struct stw_intake *next, **before; /* of those that are read */
};

/* A new socket of the connection, or none. */
void stw_intake_open(struct stw_intake *i, int fd);
void stw_intake_close(struct stw_intake *i);

/* Between these two a library reads. */
void stw_intake_begin(struct stw_intake *i);
void stw_intake_end(struct stw_intake *i);

void stw_intake_add_row(struct stw_intake *i, size_t bytes);

/* There was more than any message that steward asks for, or more between the rows. */
bool stw_intake_is_over(const struct stw_intake *i);

/* The library may have kept so much besides rows that the connection is better replaced. */
bool stw_intake_is_worn(const struct stw_intake *i);

#endif
