/* eval_special.c - erf_inv, digamma and lgamma in double, worked out in long double.
 *
 * Accurate to about an ulp where long double has 64 bits or more. Exception: digamma's negative zeros,
 * where the error is absolute (about 1e-18). Independent of the kernels' versions: it judges them. */
#include <math.h>

#include "core/graph/eval.h"

static const long double PI = 3.14159265358979323846264338327950288L;

/* A rough start, then Halley steps on erf(y) = x, near 1 on erfc(y) = 1 - x, which cancels nothing. */
double fx_eval_erf_inv(double x) {
    const long double half_sqrt_pi = 0.88622692545275801364908374167057259L;
    long double a = fabsl((long double)x), y = a * half_sqrt_pi;
    if (isnan(x) || a > 1)
        return (double)NAN;
    if (a == 1)
        return copysign((double)INFINITY, x);
    if (a > 0.05L) { /* Winitzki's formula, good to 2e-3 */
        long double l = log1pl(-a * a), t = 2 / (PI * 0.147L) + l / 2;
        y = sqrtl(sqrtl(t * t - l / 0.147L) - t);
    }
    for (int i = 0; i < 4; i++) {
        long double miss = a < 0.5L ? erfl(y) - a : (1 - a) - erfcl(y);
        long double u = miss * half_sqrt_pi * expl(y * y);
        y -= u / (1 + y * u);
    }
    return copysign((double)y, x);
}

/* Coefficients of the asymptotic series: digamma(y) = log y - 1/(2y) - sum B(2k)/(2k) y^(-2k). */
static const long double bernoulli[] = {1.0L / 12,  -1.0L / 120,     1.0L / 252, -1.0L / 240,
                                        1.0L / 132, -691.0L / 32760, 1.0L / 12,  -3617.0L / 8160};
enum { TERMS = sizeof bernoulli / sizeof *bernoulli, SHIFT = 24 };

/* digamma(x) near its positive zero z: d = x - z times a sum of positive terms,
 * sum over k of 1/((x+k)(z+k)), whose tail is a divided difference of the asymptotic series. */
static long double near_zero(long double x) {
    const long double z = 1.461632144968362341280916638641684812683L, low = -1.82570963159634842146009969714e-20L;
    long double d = (x - z) - low, sum = 0, a = x + SHIFT, b = z + SHIFT, u = 1 / a, v = 1 / b;
    for (int k = 0; k < SHIFT; k++)
        sum += 1 / ((x + k) * (z + k));
    long double r = d / b; /* log(a/b)/d, without dividing by a tiny d */
    sum += fabsl(r) < 1e-10L ? (1 - r / 2) / b : log1pl(r) / d;
    sum += u * v / 2;
    /* (u^2k - v^2k)/d = -(u v)(u + v) sum of u^2i v^2(k-1-i) */
    long double mixed = 1, vk = 1;
    for (int k = 0; k < TERMS; k++) {
        sum += bernoulli[k] * u * v * (u + v) * mixed;
        vk *= v * v;
        mixed = mixed * u * u + vk;
    }
    return d * sum;
}

static long double positive(long double x) {
    long double r = 0;
    for (; x < SHIFT; x += 1)
        r -= 1 / x;
    long double w = 1 / (x * x), p = w;
    r += logl(x) - 1 / (2 * x);
    for (int k = 0; k < TERMS; k++, p *= w)
        r -= bernoulli[k] * p;
    return r;
}

double fx_eval_digamma(double v) {
    long double x = (long double)v;
    if (v <= 0) { /* reflection; poles at 0 and at the negative integers */
        long double part = x - roundl(x);
        if (part == 0 || isinf(v))
            return (double)NAN;
        return (double)(positive(1 - x) - PI / tanl(PI * part));
    }
    if (isinf(v))
        return v;
    return (double)(fabs(v - 1.4616) < 0.3 ? near_zero(x) : positive(x));
}

double fx_eval_lgamma(double x) {
    int sign; /* lgamma_r: plain lgamma writes a global */
    return isinf(x) ? (double)INFINITY : (double)lgammal_r((long double)x, &sign);
}
