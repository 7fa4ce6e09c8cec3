/* contract.h - what the schedules of products share: the product seen as rows x columns x depth, probes of how its
 * operands lie in memory, and the epilogue.
 *
 * A schedule's tile has rows and columns. Usually they are the product's m and n; `swap` exchanges them, so that
 * the side along which lanes run can be either. All indices are element positions within the group of dimensions. */
#ifndef FX_COMPILE_CONTRACT_H
#define FX_COMPILE_CONTRACT_H

#include "core/compile/emit.h"

typedef struct fx_tile {
    fx_emit *e;
    const fx_group *g;
    fx_contraction c;
    bool swap;
    int64_t rows, cols, depth, batch;
    fx_dtype acc; /* register type of the sums */
    fx_kx *value; /* the product's element that the epilogue may ask for */
    fx_kx *at;    /* its row-major position */
} fx_tile;

bool fx_tile_init(fx_tile *t, fx_emit *e, const fx_group *g, bool swap);
/* Operand elements as expressions; indices must be in range. */
fx_kx *fx_tile_row(fx_tile *t, fx_kx *b, fx_kx *row, fx_kx *depth);
fx_kx *fx_tile_col(fx_tile *t, fx_kx *b, fx_kx *depth, fx_kx *col);

/* One multiply-add into a mutable. */
void fx_tile_fma(fx_tile *t, fx_kx *acc, fx_kx *x, fx_kx *y);

/* Computes and stores every output of the group at (row, col[0..n)), whose sums are value[0..n). Neighbours in
 * memory are stored together where their position allows it. */
void fx_tile_store(fx_tile *t, fx_kx *b, fx_kx *row, int n, fx_kx *const *col, fx_kx *const *value);

/* How many elements along the depth, or across it, one load brings, for the operand of the rows, or of the columns:
 * 1, 2 or 4. True of positions that are multiples of the number. */
typedef enum fx_tile_axis { FX_TILE_DEPTH, FX_TILE_ACROSS } fx_tile_axis;
int fx_tile_width(const fx_tile *t, bool of_rows, fx_tile_axis axis);
/* Distance in memory of neighbours along the axis, of the operand's widest load; 0 when unknown. */
int64_t fx_tile_stride(const fx_tile *t, bool of_rows, fx_tile_axis axis);
/* Is an operand's element one load and nothing else? */
bool fx_tile_plain(const fx_tile *t, bool of_rows);
/* Are columns (else rows) of the product's own element neighbours in memory? */
bool fx_tile_cols_contiguous(const fx_tile *t);
/* Should a schedule whose `lanes` run along the columns swap the sides? Lanes run along what is stored contiguously,
 * unless that side is too short for them. */
bool fx_tile_swapped(fx_emit *e, const fx_group *g, int64_t lanes);

#endif
