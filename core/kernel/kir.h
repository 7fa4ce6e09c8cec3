/* kir.h - the loop IR: what a kernel is between the graph and its text.
 *
 * Expressions are pure, typed scalars, hash-consed in the kernel's arena: equal expressions are one
 * pointer. Types are register types only (bool, s32, u32, s64, u64, f32, f64); narrower element types
 * exist in memory and as the `elem` of an operation, whose result is wrapped or rounded to it.
 * Index arithmetic (fx_k_add ... fx_k_mod) is mathematical: each integer expression carries a range
 * [lo, hi], is 32 bits wide unless the range needs 64, and is simplified with the ranges when it is made,
 * so that equal index functions become equal pointers. Data arithmetic (fx_k_op) wraps like the graph.
 *
 * Statements live in blocks; the builder appends to the innermost open one. fx_k_let names a value; it
 * moves out of loops (never out of an if) to the outermost place where its operands exist, and the same
 * expression asked again while that block is open gives the same variable. Loads are lets: they move and
 * are shared too, unless the argument is also written by the kernel. */
#ifndef FX_KERNEL_KIR_H
#define FX_KERNEL_KIR_H

#include "core/base/arena.h"
#include "core/ops/ops.h"

typedef enum fx_kop {
    FX_K_INT,   /* integer or bool constant `i` */
    FX_K_FLOAT, /* float constant `f` (any double, infinities and NaN too) */
    FX_K_VAR,   /* local, loop variable or built-in; `var` */
    FX_K_ADD,
    FX_K_MUL,
    FX_K_DIV,
    FX_K_MOD,
    FX_K_MIN,
    FX_K_MAX, /* index arithmetic */
    FX_K_LT,
    FX_K_LE,
    FX_K_EQ,
    FX_K_AND,
    FX_K_OR,
    FX_K_NOT,     /* bool; LT LE EQ on integers */
    FX_K_SELECT,  /* a[0] ? a[1] : a[2] */
    FX_K_CAST,    /* between register types, plain */
    FX_K_BITS,    /* same bits as register type `type` */
    FX_K_OP,      /* elementwise op `op` of ops.def on operands of element type `elem` */
    FX_K_CONVERT, /* the graph's convert from `elem` to `elem2` */
    FX_K_ROUND,   /* reduce_precision of `elem` to `i` >> 8 exponent and `i` & 255 mantissa bits */
    FX_K_FN,      /* M(`name`, a...) of type `elem`: as in ops.def */
    /* Right-hand sides of a let only: */
    FX_K_LOAD,    /* element `a[0]` of argument `i`, stored as `elem` */
    FX_K_SHARED,  /* element `a[0]` of shared array `i` */
    FX_K_ELEMENT, /* element `a[0]` of the local array `var` */
    FX_K_SUBGROUP /* `sub` of a[0], a[1] the lane, delta or mask */
} fx_kop;

typedef enum fx_ksub {
    FX_SUB_BROADCAST, /* a[1]: constant lane */
    FX_SUB_SHUFFLE,
    FX_SUB_SHUFFLE_DOWN,
    FX_SUB_SHUFFLE_XOR,
    FX_SUB_ADD,
    FX_SUB_MUL,
    FX_SUB_MAX,
    FX_SUB_MIN,
    FX_SUB_AND,
    FX_SUB_OR,
    FX_SUB_XOR, /* over the subgroup */
    FX_SUB_SCAN_ADD,
    FX_SUB_EXSCAN_ADD /* inclusive, exclusive */
} fx_ksub;

typedef enum fx_kbuiltin {
    FX_KB_GROUP_X,
    FX_KB_GROUP_Y,
    FX_KB_GROUP_Z, /* workgroup */
    FX_KB_LOCAL,   /* invocation in the workgroup, linear */
    FX_KB_LOCAL_X,
    FX_KB_LOCAL_Y,
    FX_KB_LANE,     /* invocation in the subgroup */
    FX_KB_SUBGROUP, /* subgroup in the workgroup */
    FX_KB_COUNT
} fx_kbuiltin;

typedef struct fx_kx fx_kx;
typedef struct fx_kblock fx_kblock;

typedef struct fx_kvar {
    int id;
    bool mutable_, builtin;
    int which; /* fx_kbuiltin */
    int depth; /* of the block that declares it; 0: the kernel's body, also for built-ins */
    fx_kx *x;  /* the VAR expression */
} fx_kvar;

struct fx_kx {
    fx_kop kop;
    fx_dtype type; /* register type */
    int n;
    fx_kx *a[3];
    int64_t lo, hi; /* integers: range, inclusive */
    int64_t i;
    double f;
    fx_op op;
    fx_ksub sub;
    fx_dtype elem, elem2;
    const char *name;
    fx_kvar *var;
    int id;
    int depth;   /* deepest block among its variables */
    bool pinned; /* reads a mutable variable or shared memory: must stay where it is */
    uint32_t hash;
    fx_kx *next; /* in the hash table */
    fx_kx *let;  /* variable that names it, while let_block is open */
    fx_kblock *let_block;
    int uses; /* renderer's */
};

typedef enum fx_kst {
    FX_KS_LET,          /* var = x */
    FX_KS_LOADV,        /* vars[0..n) = the n elements of word x of argument `arg` */
    FX_KS_MUT,          /* mutable var, initially x */
    FX_KS_ARRAY,        /* local array var of n elements, initially xs */
    FX_KS_SET,          /* var = x */
    FX_KS_STORE,        /* argument arg, element y: x, as elem */
    FX_KS_STOREV,       /* word y of argument arg = the n elements xs, as elem */
    FX_KS_SHARED_STORE, /* shared array arg, element y: x */
    FX_KS_FOR,          /* for var = x; var < y; var += step: body */
    FX_KS_WHILE,        /* while x (reads mutables): body */
    FX_KS_IF,           /* if x: body, else: orelse (may be NULL) */
    FX_KS_BARRIER,      /* workgroup: execution and shared memory */
    FX_KS_COMMENT,
    FX_KS_SEGMENT /* arguments fixed.. are those of segment x from here on */
} fx_kst;

typedef enum fx_kunroll { FX_UNROLL_AUTO, FX_UNROLL_YES, FX_UNROLL_NO } fx_kunroll;

typedef struct fx_kstmt {
    fx_kst kind;
    fx_kvar *var, **vars;
    fx_kx *x, *y, **xs;
    int arg, n;
    fx_dtype elem;
    int64_t step;
    fx_kunroll unroll;
    const char *text;
    fx_kblock *body, *orelse;
    struct fx_kstmt *next;
    int region; /* the lane renderer's */
} fx_kstmt;

struct fx_kblock {
    fx_kblock *parent;
    int depth;
    bool loop, open, maybe_empty; /* maybe_empty: a loop whose body may never run; loads stay inside */
    fx_kstmt *first, *last;
    fx_kstmt *owner;
};

typedef struct fx_karg {
    fx_dtype elem;
    bool reads, writes;
    bool unaligned;  /* the address may be any multiple of the element's size: no words */
    bool elsewhere;  /* read at places that need not be where the same invocation stores (fx_lower.in_place) */
} fx_karg;

/* A kernel over segments does the same work on several sets of arrays. Its arguments are `fixed` ordinary ones, then
 * the same number for each segment; the latter exist after fx_k_segment has said which segment the workgroup works on.
 */
typedef struct fx_ksegment {
    int fixed;
    int64_t count;
} fx_ksegment;

typedef struct fx_kshared {
    fx_dtype elem; /* register type */
    int64_t count;
} fx_kshared;

typedef struct fx_kir {
    fx_arena *arena;
    fx_kx **table;
    int n_table, n_expr, n_var;
    fx_kvar *builtin[FX_KB_COUNT];
    fx_kblock body, *block;
    fx_karg *args;
    int n_arg, cap_arg;
    fx_kshared shared[8];
    int n_shared;
    fx_ksegment segment;                  /* count 0: none */
    uint32_t workgroup[3], subgroup_size; /* 0: any */
    bool failed;                          /* out of memory */
} fx_kir;

/* A kernel in the making; all memory is the arena's. */
void fx_kir_init(fx_kir *k, fx_arena *arena);
fx_dtype fx_kir_register(fx_dtype elem); /* the register type that holds an element type */

/* Number of 64-bit arguments that a launch passes. */
int64_t fx_kir_arguments(const fx_kir *k);

/* Arguments: 64-bit addresses, numbered from 0. */
int fx_k_arg(fx_kir *k, fx_dtype elem);
int fx_k_shared(fx_kir *k, fx_dtype elem, int64_t count); /* -1: none left */

/* Constants and built-ins. */
fx_kx *fx_k_int(fx_kir *k, int64_t v);                  /* index */
fx_kx *fx_k_const(fx_kir *k, fx_dtype type, int64_t v); /* integer or bool of a register type */
fx_kx *fx_k_float(fx_kir *k, fx_dtype type, double v);
fx_kx *fx_k_bool(fx_kir *k, bool v);
fx_kx *fx_k_number(fx_kir *k, fx_dtype type, double v);           /* whatever the type needs */
fx_kx *fx_k_builtin(fx_kir *k, fx_kbuiltin which, int64_t count); /* range [0, count) */

/* Index arithmetic; all operands integers of any width. Division and remainder take a positive
 * constant and a dividend whose range is not negative. */
fx_kx *fx_k_add(fx_kir *k, fx_kx *a, fx_kx *b);
fx_kx *fx_k_sub(fx_kir *k, fx_kx *a, fx_kx *b);
fx_kx *fx_k_mul(fx_kir *k, fx_kx *a, fx_kx *b);
fx_kx *fx_k_div(fx_kir *k, fx_kx *a, int64_t c);
fx_kx *fx_k_mod(fx_kir *k, fx_kx *a, int64_t c);
fx_kx *fx_k_min(fx_kir *k, fx_kx *a, fx_kx *b);
fx_kx *fx_k_max(fx_kir *k, fx_kx *a, fx_kx *b);
fx_kx *fx_k_addc(fx_kir *k, fx_kx *a, int64_t c);
fx_kx *fx_k_mulc(fx_kir *k, fx_kx *a, int64_t c);
fx_kx *fx_k_lt(fx_kir *k, fx_kx *a, fx_kx *b);
fx_kx *fx_k_le(fx_kir *k, fx_kx *a, fx_kx *b);
fx_kx *fx_k_eq(fx_kir *k, fx_kx *a, fx_kx *b);
fx_kx *fx_k_and(fx_kir *k, fx_kx *a, fx_kx *b);
fx_kx *fx_k_or(fx_kir *k, fx_kx *a, fx_kx *b);
fx_kx *fx_k_not(fx_kir *k, fx_kx *a);
fx_kx *fx_k_select(fx_kir *k, fx_kx *c, fx_kx *a, fx_kx *b); /* any type */
/* Row-major position of idx in dims, and back. */
fx_kx *fx_k_linearise(fx_kir *k, int rank, const int64_t *dims, fx_kx *const *idx);
void fx_k_delinearise(fx_kir *k, fx_kx *linear, int rank, const int64_t *dims, fx_kx **idx);
/* The same over all dims but `dim` (which may be none of them), whose index is `at`. */
void fx_k_delinearise_around(fx_kir *k, fx_kx *linear, int rank, const int64_t *dims, int dim, fx_kx *at, fx_kx **idx);

/* Data. */
fx_kx *fx_k_cast(fx_kir *k, fx_kx *a, fx_dtype type); /* plain; a wider or narrower integer whose range fits */
fx_kx *fx_k_bits(fx_kir *k, fx_kx *a, fx_dtype type);
fx_kx *fx_k_op(fx_kir *k, fx_op op, fx_dtype elem, int n, fx_kx *const *a); /* elem: of the operand that counts */
fx_kx *fx_k_op2(fx_kir *k, fx_op op, fx_dtype elem, fx_kx *a, fx_kx *b);
fx_kx *fx_k_convert(fx_kir *k, fx_kx *a, fx_dtype from, fx_dtype to);
fx_kx *fx_k_round(fx_kir *k, fx_kx *a, fx_dtype elem, int exponent_bits, int mantissa_bits);
fx_kx *fx_k_fn(fx_kir *k, const char *name, fx_dtype elem, int n, fx_kx *const *a); /* result type: elem's register */

/* Statements. Values are variables afterwards. */
fx_kx *fx_k_let(fx_kir *k, fx_kx *x); /* constants and variables stay as they are */
/* x, which the caller knows to lie in [lo, hi] here (inside a guard): a variable with that range. */
fx_kx *fx_k_bound(fx_kir *k, fx_kx *x, int64_t lo, int64_t hi);
/* x within [0, n): where its range doesn't say so, opens an if, which the caller closes when *guard says so. */
fx_kx *fx_k_guard(fx_kir *k, fx_kx *x, int64_t n, bool *guard);
fx_kx *fx_k_rename(fx_kir *k, fx_kx *x, int64_t lo, int64_t hi); /* the same, without regard to x's own range */
fx_kx *fx_k_load(fx_kir *k, int arg, fx_kx *index);
/* n consecutive elements as one word: quicker than n loads. n times the element's size in memory is 4 or 8 bytes,
 * `index` a multiple of n, and the argument's address a multiple of the word's size. Moves out of loops. */
bool fx_k_pack_ok(fx_dtype elem, int n);
void fx_k_loadv(fx_kir *k, int arg, fx_kx *index, int n, fx_kx **out);
void fx_k_store(fx_kir *k, int arg, fx_kx *index, fx_kx *x);
void fx_k_storev(fx_kir *k, int arg, fx_kx *index, int n, fx_kx *const *x);
fx_kx *fx_k_shared_load(fx_kir *k, int shared, fx_kx *index);
void fx_k_shared_store(fx_kir *k, int shared, fx_kx *index, fx_kx *x);
fx_kx *fx_k_mut(fx_kir *k, fx_kx *init); /* a mutable variable; reading it is `pinned` */
void fx_k_set(fx_kir *k, fx_kx *mut, fx_kx *x);
fx_kx *fx_k_read(fx_kir *k, fx_kx *mut); /* its present value, as a let */
/* An array of the invocation, never written again: n values of one type; and an element of it. */
fx_kx *fx_k_array(fx_kir *k, int n, fx_kx *const *values);
fx_kx *fx_k_element(fx_kir *k, fx_kx *array, fx_kx *index);
fx_kx *fx_k_subgroup(fx_kir *k, fx_ksub sub, fx_kx *x, fx_kx *lane /* or NULL */);
/* Chooses the segment (the same for the whole workgroup) out of count; arguments made from now on are its own. */
void fx_k_segment(fx_kir *k, fx_kx *segment, int64_t count);
void fx_k_barrier(fx_kir *k);
void fx_k_comment(fx_kir *k, const char *text);
/* for v in [from, to) by step: returns v. Loops with constant, non-empty bounds let loads move out. */
fx_kx *fx_k_for(fx_kir *k, fx_kx *from, fx_kx *to, int64_t step, bool unroll);
void fx_k_keep_loop(fx_kir *k);          /* the innermost open for must not be unrolled by the driver */
void fx_k_while(fx_kir *k, fx_kx *cond); /* cond: evaluated each time, of mutables */
void fx_k_if(fx_kir *k, fx_kx *cond);
void fx_k_else(fx_kir *k);
void fx_k_end(fx_kir *k); /* closes the innermost for, while or if */

/* Joins loads of 2 or 4 neighbouring elements that stand in one block into words, where the first index is known to be
 * a multiple of their number. Last, on a finished kernel. */
void fx_kir_join_loads(fx_kir *k);
/* Loads in the kernel; a joined one counts once. */
int fx_kir_count_loads(const fx_kir *k);

/* Small helpers for analysis. */
bool fx_kx_is_int(const fx_kx *x, int64_t v);
bool fx_kx_is_const(const fx_kx *x);
/* Does x depend on variable v? */
bool fx_kx_depends(const fx_kx *x, const fx_kx *v);
/* The largest power of two that is known to divide the integer x; at most 64, also for 0. */
int64_t fx_kx_multiple(const fx_kx *x);
/* x = stride * v + rest with rest free of v: true and the stride, when x is affine in v. */
bool fx_kx_stride(fx_kir *k, fx_kx *x, fx_kx *v, int64_t *stride);

#endif
