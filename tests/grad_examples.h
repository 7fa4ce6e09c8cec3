/* grad_examples.h - variants of ops whose derivatives or batching differ by attributes; floats are f64. */
#ifndef TESTS_GRAD_EXAMPLES_H
#define TESTS_GRAD_EXAMPLES_H

#define SCALARS "%zero = constant() {dtype=f64, shape=[], value=[0]} "

static const char *const grad_examples[] = {
    /* convolution: groups, dilations, negative padding, reversal, layouts */
    "graph(%x: f64[2,4,3], %w: f64[4,4,2]) { %y = convolution(%x, %w) {batch_groups=2, low=[1], high=[0]} return %y }",
    "graph(%x: f64[2,4,5], %w: f64[6,2,2]) { %y = convolution(%x, %w) {feature_groups=2, strides=[2], low=[-1], "
    "high=[2]} return %y }",
    "graph(%x: f64[1,2,5,4], %w: f64[3,2,2,2]) { %y = convolution(%x, %w) {strides=[2,1], low=[1,2], high=[2,-1], "
    "lhs_dilation=[1,2], "
    "rhs_dilation=[2,1], window_reversal=[0,1]} return %y }",
    "graph(%x: f64[4,3,6], %w: f64[2,3,4]) { %y = convolution(%x, %w) {lhs_spec=[0,2,1], rhs_spec=[2,1,0], "
    "out_spec=[1,0,2], "
    "feature_groups=2, strides=[2], high=[1]} return %y }",
    "graph(%x: f64[6,3], %w: f64[4,3]) { %y = convolution(%x, %w) {batch_groups=2} return %y }",
    "graph(%x: f64[1,1,3], %w: f64[1,1,2]) { %y = convolution(%x, %w) {low=[-2], high=[-1]} return %y }",
    /* contraction: several dimensions, orders, outer product, narrow types */
    "graph(%a: f64[4,2,3], %b: f64[5,4,2]) { %c = dot_general(%a, %b) {lhs_batch=[1], rhs_batch=[2], lhs_contract=[0], "
    "rhs_contract=[1]} return %c }",
    "graph(%a: f64[2,3,4], %b: f64[4,5,2]) { %c = dot_general(%a, %b) {lhs_contract=[0,2], rhs_contract=[2,0]} return "
    "%c }",
    "graph(%a: f64[3], %b: f64[2]) { %c = dot_general(%a, %b) {} return %c }",
    "graph(%a: f64[3], %b: f64[3]) { %c = dot_general(%a, %b) {lhs_contract=[0], rhs_contract=[0]} return %c }",
    "graph(%a: f64[2,2,3,2], %b: f64[2,2,2,3]) { %c = dot_general(%a, %b) {lhs_batch=[1,0], rhs_batch=[0,2], "
    "lhs_contract=[2], "
    "rhs_contract=[3]} return %c }",
    "graph(%a: f64[3,3]) { %c = dot_general(%a, %a) {lhs_contract=[0], rhs_contract=[1]} return %c }",
    /* reductions */
    "graph(%x: f64[2,3,2]) { %y = reduce(%x) {kind=prod, dims=[0,2]} return %y }",
    "graph(%x: f64[3,2]) { %y = reduce(%x) {kind=prod, dims=[0]} return %y }",
    "graph(%x: f64[1,2]) { %y = reduce(%x) {kind=prod, dims=[0]} return %y }",
    "graph(%x: f64[2,3]) { %y = reduce(%x) {kind=prod, dims=[]} return %y }",
    "graph(%x: f64[2,3]) { %y = reduce(%x) {kind=max, dims=[1]} return %y }",
    "graph(%x: f64[2,3]) { %y = reduce(%x) {kind=min, dims=[0,1]} return %y }",
    "graph(%x: f64[0,3]) { %y = reduce(%x) {kind=sum, dims=[0]} return %y }",
    "graph(%x: f64[2,0]) { %y = reduce(%x) {kind=max, dims=[0]} return %y }",
    "graph(%x: f64[2,3,2], %i: f64[]) { %t = reduce_fn(%x, %i, graph(%a: f64[], %b: f64[]) { %c = mul(%a, %b) return "
    "%c }) {dims=[0,1]} "
    "%y = project(%t) {index=0} return %y }",
    "graph(%x: f64[5], %z: f64[5], %i: f64[], %j: f64[]) { %t = reduce_fn(%x, %z, %i, %j, graph(%a: f64[], %b: f64[], "
    "%c: f64[], "
    "%d: f64[]) { %p = mul(%a, %c) %q = mul(%c, %b) %r = add(%q, %d) return %p, %r }) {dims=[0]} "
    "%y = project(%t) {index=0} %w = project(%t) {index=1} return %y, %w }", /* composition of affine maps: not
                                                                                commutative */
    "graph(%x: f64[0], %i: f64[]) { %t = reduce_fn(%x, %i, graph(%a: f64[], %b: f64[]) { %c = mul(%a, %b) return %c }) "
    "{dims=[0]} "
    "%y = project(%t) {index=0} return %y }",
    "graph(%x: f64[2,5]) { %y = cumulative(%x) {kind=sum, dim=0} return %y }",
    "graph(%x: f64[2,5]) { %y = cumulative(%x) {kind=prod, dim=1} return %y }",
    "graph(%x: f64[5,2]) { %y = cumulative(%x) {kind=prod, dim=0, reverse=1} return %y }",
    "graph(%x: f64[2,5]) { %y = cumulative(%x) {kind=max, dim=1, reverse=1} return %y }",
    "graph(%x: f64[6]) { %y = cumulative(%x) {kind=min, dim=0} return %y }",
    "graph(%x: f64[0]) { %y = cumulative(%x) {kind=prod, dim=0} return %y }",
    /* windows */
    "graph(%x: f64[4,5]) { %y = reduce_window(%x) {kind=max, window=[2,3], strides=[1,2], low=[1,0], high=[0,2]} "
    "return %y }",
    "graph(%x: f64[5]) { %y = reduce_window(%x) {kind=min, window=[2], rhs_dilation=[3], lhs_dilation=[2], "
    "strides=[2], low=[1]} return %y }",
    "graph(%x: f64[4,3]) { %y = reduce_window(%x) {kind=prod, window=[2,2], strides=[2,1], low=[0,1], high=[1,0]} "
    "return %y }",
    "graph(%x: f64[7]) { %y = reduce_window(%x) {kind=sum, window=[3], strides=[2], low=[-1], high=[1], "
    "rhs_dilation=[2]} return %y }",
    "graph(%x: f64[6], %s: f64[4]) { %y = select_and_scatter(%x, %s) {kind=min, window=[3], strides=[2], low=[2], "
    "high=[1]} return %y }",
    /* indexing: indices in 0..3, so that some are out of range */
    "graph(%x: f64[2,3], %i: s32[2,4]) { %y = gather(%x, %i) {offset_dims=[0], collapsed_slice_dims=[0], "
    "start_index_map=[0], "
    "index_vector_dim=2, slice_sizes=[1,2]} return %y }",
    "graph(%x: f64[3,4], %i: s32[2,3]) { %y = gather(%x, %i) {offset_dims=[1,2], start_index_map=[1,0], "
    "index_vector_dim=0, slice_sizes=[2,3]} return %y }",
    "graph(%x: f64[3], %i: s8[]) { %y = gather(%x, %i) {collapsed_slice_dims=[0], start_index_map=[0], "
    "index_vector_dim=0, "
    "slice_sizes=[1]} return %y }",
    "graph(%x: f64[3,2], %i: s32[5], %u: f64[5,2]) { %y = scatter(%x, %i, %u) {kind=add, update_window_dims=[1], "
    "inserted_window_dims=[0], scatter_dims=[0], index_vector_dim=1} return %y }",
    "graph(%x: f64[3,2], %i: s32[5], %u: f64[5,2]) { %y = scatter(%x, %i, %u) {kind=set, update_window_dims=[1], "
    "inserted_window_dims=[0], scatter_dims=[0], index_vector_dim=1} return %y }",
    "graph(%x: f64[4,3], %i: s32[2,2], %u: f64[2,2,2]) { %y = scatter(%x, %i, %u) {kind=set, update_window_dims=[1,2], "
    "scatter_dims=[0,1], index_vector_dim=1} return %y }",
    "graph(%x: f64[3,2], %i: s32[4], %u: f64[4,2]) { %y = scatter(%x, %i, %u) {kind=mul, update_window_dims=[1], "
    "inserted_window_dims=[0], scatter_dims=[0], index_vector_dim=1} return %y }",
    "graph(%x: f64[3,2], %i: s32[4], %u: f64[4,2]) { %y = scatter(%x, %i, %u) {kind=max, update_window_dims=[1], "
    "inserted_window_dims=[0], scatter_dims=[0], index_vector_dim=1} return %y }",
    "graph(%x: f64[3,2], %i: s32[4], %u: f64[4,2]) { %y = scatter(%x, %i, %u) {kind=min, update_window_dims=[1], "
    "inserted_window_dims=[0], scatter_dims=[0], index_vector_dim=1} return %y }",
    "graph(%x: f64[4,5], %u: f64[2,3], %i: s32[], %j: s32[]) { %y = dynamic_update_slice(%x, %u, %i, %j) return %y }",
    /* views */
    "graph(%x: f64[3,1,2]) { %y = broadcast_in_dim(%x) {shape=[2,4,3,5], dims=[2,1,0]} return %y }",
    "graph(%x: f64[1,1]) { %y = broadcast_in_dim(%x) {shape=[1,3], dims=[0,1]} return %y }",
    "graph(%x: f64[7]) { %y = slice(%x) {start=[1], limit=[6], strides=[3]} return %y }",
    "graph(%x: f64[4]) { %y = slice(%x) {start=[3], limit=[3], strides=[2]} return %y }",
    "graph(%x: f64[0], %v: f64[]) { %y = pad(%x, %v) {low=[2], high=[1], interior=[3]} return %y }",
    "graph(%x: f64[4], %v: f64[]) { %y = pad(%x, %v) {low=[-2], high=[-1], interior=[1]} return %y }",
    "graph(%x: f64[2,1], %y: f64[2,3]) { %z = concatenate(%y, %x, %y) {dim=1} return %z }",
    /* order */
    "graph(%x: f64[2,5], %y: f64[2,5]) { %t = sort(%x, %y, graph(%a: f64[], %b: f64[], %c: f64[], %d: f64[]) { %e = "
    "lt(%a, %b) "
    "return %e }) {dim=1} %v = project(%t) {index=0} %w = project(%t) {index=1} return %v, %w }",
    "graph(%x: f64[3,2,4]) { %t = top_k(%x) {k=2} %y = project(%t) {index=0} return %y }",
    /* keeps every bit: the general case is a step function */
    "graph(%x: f64[4]) { %y = reduce_precision(%x) {exponent_bits=11, mantissa_bits=52} return %y }",
    /* the same value twice */
    "graph(%x: f64[3]) { %y = mul(%x, %x) %z = mul(%y, %x) return %z, %y, %x }",
    "graph(%x: f64[3]) { %y = sub(%x, %x) %z = div(%x, %x) %w = add(%x, %x) return %y, %z, %w }",
    /* control flow */
    "graph(%i: s32[], %x: f64[2]) { %t = cond(%i, %x, graph(%a: f64[2]) { %b = exp(%a) return %b, %a }, "
    "graph(%a: f64[2]) { %c = constant() {dtype=f64, shape=[2], value=[7]} return %a, %c }, graph(%a: f64[2]) { %b = "
    "neg(%a) return %b, %b "
    "}) %y = project(%t) {index=0} %z = project(%t) {index=1} return %y, %z }",
    "graph(%i: s32[], %x: f64[2], %w: f64[2]) { %t = cond(%i, %x, %w, graph(%a: f64[2], %c: f64[2]) { %b = exp(%a) %d "
    "= mul(%b, %c) "
    "%e = sin(%d) return %e }, graph(%a: f64[2], %c: f64[2]) { %b = tanh(%a) %d = mul(%b, %b) return %d }) "
    "%y = project(%t) {index=0} return %y }",
    /* a recurrence: constants, carry, slices and stacked results, all with tangents; hoisted and stacked residuals */
    "graph(%w: f64[2,2], %h: f64[2], %xs: f64[3,2]) { %t = scan(%w, %h, %xs, graph(%a: f64[2,2], %b: f64[2], %x: "
    "f64[2]) { "
    "%e = exp(%a) %m = dot_general(%e, %b) {lhs_contract=[1], rhs_contract=[0]} %s = add(%m, %x) %n = tanh(%s) %o = "
    "mul(%n, %x) "
    "return %n, %o }) {n_consts=1, n_carry=1, length=3} %y = project(%t) {index=0} %ys = project(%t) {index=1} return "
    "%y, %ys }",
    /* an integer carry next to a float one; a result that doesn't depend on the carry */
    "graph(%h: f64[], %k: s32[], %xs: f64[4]) { %t = scan(%h, %k, %xs, graph(%b: f64[], %i: s32[], %x: f64[]) { "
    "%one = constant() {dtype=s32, shape=[], value=[1]} %j = add(%i, %one) %f = convert(%i) {dtype=f64} %m = mul(%b, "
    "%f) "
    "%n = sin(%m) %q = mul(%x, %x) return %n, %j, %q }) {n_consts=0, n_carry=2, length=4, reverse=1} "
    "%y = project(%t) {index=0} %ys = project(%t) {index=2} return %y, %ys }",
    /* no slices; a carry that starts without a tangent and gets one */
    "graph(%w: f64[]) { %c = constant() {dtype=f64, shape=[], value=[1]} %t = scan(%w, %c, graph(%a: f64[], %b: f64[]) "
    "{ "
    "%m = mul(%a, %b) %n = sin(%m) return %n, %n }) {n_consts=1, n_carry=1, length=5} %y = project(%t) {index=0} "
    "return %y }",
    /* a scan of a cond of a scan */
    "graph(%w: f64[], %c: f64[], %is: s32[4]) { %t = scan(%w, %c, %is, graph(%a: f64[], %b: f64[], %i: s32[]) { "
    "%u = cond(%i, %a, %b, graph(%p: f64[], %q: f64[]) { %r = mul(%p, %q) return %r }, "
    "graph(%p: f64[], %q: f64[]) { %v = scan(%p, %q, graph(%p2: f64[], %q2: f64[]) { %r = add(%p2, %q2) %s = sin(%r) "
    "return %s }) "
    "{n_consts=1, n_carry=1, length=2} %r = project(%v) {index=0} return %r }, graph(%p: f64[], %q: f64[]) { %r = "
    "exp(%q) "
    "%s = tanh(%r) return %s }) %y = project(%u) {index=0} return %y, %y }) {n_consts=1, n_carry=1, length=4} "
    "%y = project(%t) {index=0} %ys = project(%t) {index=1} return %y, %ys }",
    /* rematerialised, within a scan and around one */
    "graph(%w: f64[], %c: f64[]) { %t = scan(%w, %c, graph(%a: f64[], %b: f64[]) { %u = call(%a, %b, graph(%p: f64[], "
    "%q: f64[]) { "
    "%r = mul(%p, %q) %s = sin(%r) %z = exp(%s) return %z }) {kind=remat} %y = project(%u) {index=0} return %y }) "
    "{n_consts=1, n_carry=1, length=3} %y = project(%t) {index=0} return %y }",
    "graph(%w: f64[], %c: f64[]) { %u = call(%w, %c, graph(%p: f64[], %q: f64[]) { %t = scan(%p, %q, graph(%a: f64[], "
    "%b: f64[]) { "
    "%r = mul(%a, %b) %s = sin(%r) return %s, %r }) {n_consts=1, n_carry=1, length=3} %y = project(%t) {index=0} "
    "%ys = project(%t) {index=1} return %y, %ys }) {kind=remat} %y = project(%u) {index=0} %ys = project(%u) {index=1} "
    "return %y, %ys }",
};

/* Forward mode only. */
static const char *const grad_examples_while[] = {
    "graph(%i: s32[], %x: f64[2]) { %t = while(%i, %x, graph(%j: s32[], %a: f64[2]) { %c = constant() {dtype=s32, "
    "shape=[], value=[3]} "
    "%p = lt(%j, %c) return %p }, graph(%j: s32[], %a: f64[2]) { %one = constant() {dtype=s32, shape=[], value=[1]} %k "
    "= add(%j, %one) "
    "%b = sin(%a) return %k, %b }) {n_carry=2} %y = project(%t) {index=0} %z = project(%t) {index=1} return %y, %z }",
    "graph(%n: s32[], %x: f64[], %w: f64[]) { %o = constant() {dtype=f64, shape=[], value=[1]} %z = constant() "
    "{dtype=s32, shape=[], "
    "value=[0]} %t = while(%z, %o, %x, %n, %w, graph(%i: s32[], %p: f64[], %q: f64[], %m: s32[], %v: f64[]) { %c = "
    "lt(%i, %m) return %c }, "
    "graph(%i: s32[], %p: f64[], %q: f64[], %m: s32[], %v: f64[]) { %one = constant() {dtype=s32, shape=[], value=[1]} "
    "%j = add(%i, %one) "
    "%a = mul(%p, %v) %b = mul(%q, %q) return %j, %a, %b }) {n_carry=3} %y = project(%t) {index=1} %s = project(%t) "
    "{index=2} "
    "return %y, %s }",
};

/* Reverse mode only: custom_vjp within a scan and in a rematerialised call. */
#define CUSTOM_MUL                                                                                                   \
    "graph(%p: f64[], %q: f64[]) { %r = mul(%p, %q) return %r }, graph(%p: f64[], %q: f64[]) { %r = mul(%p, %q) "    \
    "return %r, %p, %q }, "                                                                                          \
    "graph(%p: f64[], %q: f64[], %d: f64[]) { %e = mul(%d, %q) %f = mul(%d, %p) return %e, %f }) {kind=custom_vjp, " \
    "n_residual=2} "
static const char *const grad_examples_custom_vjp[] = {
    "graph(%w: f64[], %c: f64[]) { %t = scan(%w, %c, graph(%a: f64[], %b: f64[]) { %u = call(%a, %b, " CUSTOM_MUL
    "%y = project(%u) {index=0} %z = sin(%y) return %z }) {n_consts=1, n_carry=1, length=3} %y = project(%t) {index=0} "
    "return %y }",
    "graph(%w: f64[], %c: f64[]) { %t = call(%w, %c, graph(%a: f64[], %b: f64[]) { %s = sin(%a) %u = call(%s, "
    "%b, " CUSTOM_MUL
    "%y = project(%u) {index=0} %z = sin(%y) return %z }) {kind=remat} %y = project(%t) {index=0} return %y }",
};
#undef CUSTOM_MUL
#undef SCALARS

#endif
