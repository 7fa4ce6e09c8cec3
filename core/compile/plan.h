/* plan.h - memory of a program's intermediates: every TEMP buffer gets a place in one arena, decided
 * before anything runs. Buffers whose lifetimes don't meet share bytes; a result written in place shares
 * its operand's. */
#ifndef FX_COMPILE_PLAN_H
#define FX_COMPILE_PLAN_H

#include "core/compile/program.h"

enum { FX_PLAN_NONE = -1 };

typedef struct fx_plan {
    int64_t *offset;     /* per buffer: byte offset in the arena; FX_PLAN_NONE when it is not there */
    int *donor;          /* per result of the program: parameter whose memory it takes over, or FX_PLAN_NONE */
    bool *in_place;      /* per result with a donor: written where the donor is read (else after its last use) */
    uint64_t bytes;      /* of the arena */
    uint64_t chunk;      /* no buffer crosses a multiple of this */
    uint64_t live_peak;  /* largest sum of live buffers at a step: no plan can need less */
} fx_plan;

/* donated: per parameter. chunk: largest device allocation, a multiple of 256. Results of the program that
 * are TEMP buffers don't live in the arena, but in arrays of their own, unless they get a donor. */
fx_status fx_plan_create(const fx_program *p, const bool *donated, uint64_t chunk, fx_plan **out);
void fx_plan_destroy(fx_plan *plan); /* NULL is fine */

#endif
