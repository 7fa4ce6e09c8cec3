/* kir_build.h - what the files of the loop IR share: making an expression from its description. */
#ifndef FX_KERNEL_KIR_BUILD_H
#define FX_KERNEL_KIR_BUILD_H

#include "core/kernel/kir.h"

/* The expression equal to *t (operands, payload, type), new or known. lo > hi: the type's whole range. */
fx_kx *fx_kx_make(fx_kir *k, const fx_kx *t);

#endif
