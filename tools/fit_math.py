#!/usr/bin/env python3
"""Fits the polynomials of core/kernel/mathlib_*.inc (needs mpmath; run: tools/fit_math.py [name ...]).

Each job approximates g(x) by c0 + c1 x + ... + cn x^n on [a, b] so that the largest of |weight(x) * error(x)| is
smallest (Remez 1934, exchange on a grid). Coefficients are then rounded to the target format: all at once, or for
f32 one by one from the lowest power with the rest fitted again, whichever leaves less error. The script prints them
with the error that is left (log2).
"""
import struct
import sys
from mpmath import mp, mpf
import mpmath as M

mp.dps = 90


def to_f32(c):
    """Nearest float32 of c, ties ignored."""
    return mpf(struct.unpack("f", struct.pack("f", float(c)))[0])


def to_f64(c):
    return mpf(float(c))


def remez(g, w, a, b, n, fixed=()):
    """Minimax coefficients of degree n with the first len(fixed) given; returns (coefficients, error)."""
    k = len(fixed)
    free = n + 1 - k
    if free == 0:
        return list(fixed), None
    grid_n = max(40 * (free + 1), 240)
    xs = [(a + b) / 2 - (b - a) / 2 * M.cos(M.pi * i / grid_n) for i in range(grid_n + 1)]
    data = [(x, g(x) - M.polyval(list(reversed(fixed)) or [0], x), w(x)) for x in xs]
    wmax = max(abs(d[2]) for d in data)
    data = [d for d in data if abs(d[2]) > wmax * mpf(10) ** -6]
    idx = [round((1 - M.cos(M.pi * (2 * i + 1) / (2 * (free + 1)))) / 2 * (len(data) - 1)) for i in range(free + 1)]
    for i in range(1, len(idx)):
        idx[i] = max(idx[i], idx[i - 1] + 1)
    for _ in range(40):
        A = M.matrix(free + 1, free + 1)
        rhs = M.matrix(free + 1, 1)
        for r, i in enumerate(idx):
            x, gx, wx = data[i]
            for c in range(free):
                A[r, c] = x ** (c + k)
            A[r, free] = (-1) ** r / wx
            rhs[r] = gx
        sol = M.lu_solve(A, rhs)
        co = [sol[c] for c in range(free)]
        poly = [mpf(0)] * k + co
        err = [(gx - M.polyval(list(reversed(poly)), x)) * wx for x, gx, wx in data]
        # one extremum for each run of equal sign, then keep the best alternating free + 1
        runs = []
        for i, e in enumerate(err):
            if runs and (err[runs[-1]] > 0) == (e > 0):
                if abs(e) > abs(err[runs[-1]]):
                    runs[-1] = i
            else:
                runs.append(i)
        while len(runs) > free + 1:
            if len(runs) == free + 2:
                runs.pop(0 if abs(err[runs[0]]) < abs(err[runs[-1]]) else -1)
            else:
                j = min(range(len(runs) - 1), key=lambda q: max(abs(err[runs[q]]), abs(err[runs[q + 1]])))
                if j == 0 and abs(err[runs[0]]) < abs(err[runs[1]]):
                    runs.pop(0)
                elif j == len(runs) - 2 and abs(err[runs[-1]]) < abs(err[runs[-2]]):
                    runs.pop()
                else:
                    del runs[j:j + 2]
        top = max(abs(e) for e in err)
        if len(runs) < free + 1 or runs == idx or top < abs(sol[free]) * mpf("1.01"):
            break
        idx = runs
    return list(fixed) + co, top


def fit(name, bits, g, w, a, b, n, fixed=()):
    """Fits, rounds coefficient by coefficient, and prints."""
    a, b = mpf(a), mpf(b)
    rnd = to_f32 if bits == 32 else to_f64
    out = [mpf(c) for c in fixed]
    co, top = remez(g, w, a, b, n, out)
    ideal = top
    points = [(x, g(x), w(x)) for x in [a + (b - a) * (i + mpf(1) / 2) / 700 for i in range(700)]]
    measure = lambda cs: max(abs((gx - M.polyval(list(reversed(cs)), x)) * wx) for x, gx, wx in points)
    best = [rnd(c) for c in co]
    if bits == 32:
        while len(out) <= n:
            out.append(rnd(co[len(out)]))
            if len(out) <= n:
                co, _ = remez(g, w, a, b, n, out)
        best = min(best, out, key=measure)
    out, worst = best, measure(best)
    print(f"{name} degree {n} on [{M.nstr(a, 6)}, {M.nstr(b, 6)}]: "
          f"error 2^{M.nstr(M.log(ideal, 2), 4)}, rounded 2^{M.nstr(M.log(worst, 2), 4)}")
    fmt = (lambda c: M.nstr(c, 9) + "f") if bits == 32 else (lambda c: f"FX_D({float(c)!r})")
    print("    " + ", ".join(fmt(c) for c in out), flush=True)


JOBS = {}


def job(f):
    JOBS[f.__name__] = f
    return f


LN2 = M.log(2)
TINY = mpf(10) ** -12


def nz(x):
    return x if abs(x) > TINY else TINY


@job
def exp():
    """exp(r) = 1 + r + r^2 p(r), and expm1 with relative weight."""
    h = LN2 / 2 * mpf("1.002")
    p = lambda r: (M.expm1(nz(r)) - nz(r)) / nz(r) ** 2
    fit("exp f32: p, exp(r) = 1 + r + r^2 p(r)", 32, p, lambda r: r * r, -h, h, 4)
    fit("expm1 f32: p, expm1(r) = r + r^2 p(r)", 32, p, lambda r: r * r / M.expm1(nz(r)), -h, h, 5)
    fit("exp, expm1 f64: p", 64, p, lambda r: r * r / M.expm1(nz(r)), -h, h, 10)
    q = lambda r: M.expm1(nz(r) * LN2) / nz(r)
    fit("exp2 f32: q, 2^r = 1 + r q(r)", 32, q, lambda r: r, "-0.5005", "0.5005", 5)
    fit("exp2 f64: q", 64, q, lambda r: r, "-0.5005", "0.5005", 11)


@job
def log():
    """log(1+f) = f - f^2/2 + f^3 p(f) (f32); log(1+f) = f - f^2/2 + s (f^2/2 + z p(z)), s = f/(2+f), z = s^2 (f64)."""
    a, b = M.sqrt(mpf(1) / 2) - 1, M.sqrt(2) - 1
    p = lambda f: (M.log1p(nz(f)) - nz(f) + nz(f) ** 2 / 2) / nz(f) ** 3
    fit("log f32: p", 32, p, lambda f: f ** 3 / M.log1p(nz(f)), a, b, 8)
    r = lambda z: (M.log((1 + M.sqrt(nz(z))) / (1 - M.sqrt(nz(z)))) / M.sqrt(nz(z)) - 2) / nz(z)
    s = b / (2 + b)
    fit("log f64: p(z), log((1+s)/(1-s)) = 2s + s z p(z)", 64, r, lambda z: z, 0, s * s * mpf("1.001"), 6)
    fit("pow f32: p(z)", 32, r, lambda z: z, 0, s * s * mpf("1.001"), 3)
    r2 = lambda z: (r(z) - mpf(2) / 3) / nz(z) * 3 / 2
    fit("pow f64: p(z), log((1+s)/(1-s)) = 2/3 s (3 + z + z^2 p(z))", 64, r2, lambda z: z * z, 0,
        s * s * mpf("1.001"), 6)


@job
def trig():
    h = (M.pi / 4 * mpf("1.003")) ** 2
    s = lambda z: (M.sin(M.sqrt(nz(z))) / M.sqrt(nz(z)) - 1) / nz(z)
    c = lambda z: (M.cos(M.sqrt(nz(z))) - 1 + nz(z) / 2) / nz(z) ** 2
    t = lambda z: (M.tan(M.sqrt(nz(z))) / M.sqrt(nz(z)) - 1) / nz(z)
    fit("sin f32: S(z), sin r = r + r z S(z)", 32, s, lambda z: z, 0, h, 3)
    fit("cos f32: C(z), cos r = 1 - z/2 + z^2 C(z)", 32, c, lambda z: z * z, 0, h, 2)
    fit("tan f32: T(z), tan r = r + r z T(z)", 32, t, lambda z: z, 0, h, 6)
    fit("sin f64: S(z)", 64, s, lambda z: z, 0, h, 6)
    fit("cos f64: C(z)", 64, c, lambda z: z * z, 0, h, 6)
    fit("tan f64: T(z)", 64, t, lambda z: z, 0, h, 14)


@job
def tanh():
    g = lambda z: (M.tanh(M.sqrt(nz(z))) / M.sqrt(nz(z)) - 1) / nz(z)
    fit("tanh f32: P(z), tanh x = x + x z P(z), x <= 0.65", 32, g, lambda z: z, 0, mpf("0.65") ** 2, 5)
    fit("tanh f64: P(z), x <= 0.65", 64, g, lambda z: z, 0, mpf("0.65") ** 2, 13)


@job
def erf():
    e = lambda z: M.erf(M.sqrt(nz(z))) / M.sqrt(nz(z)) - 1
    fit("erf f32: P(z), erf x = x + x P(z), x <= 1", 32, e, lambda z: 1, 0, 1, 6)
    fit("erf f64: P(z), x <= 1", 64, e, lambda z: 1, 0, 1, 13)
    l = lambda t: M.log(M.erfc(t)) / t
    fit("erf f32: Q(t), erfc t = exp(t Q(t)), 1 <= t <= 4", 32, l, lambda t: t * M.erfc(t), 1, 4, 6)


@job
def erfc():
    """erfc x = exp(-x^2) (1 + G(q)) / (1 + 2x), q = (x - 4) / (x + 4), x >= 0."""
    def g(q):
        x = 4 * (1 + q) / (1 - q)
        return M.erfc(x) * M.exp(x * x) * (1 + 2 * x) - 1
    fit("erfc f64: G(q)", 64, g, lambda q: 1, mpf(-1), mpf(24.5) / mpf(32.5), 22)


@job
def erf_inv():
    """erf_inv x = x P(w), w = -log(1 - x^2)."""
    def by_w(w):
        w = nz(w)
        x = M.sqrt(-M.expm1(-w))
        y = mpf(M.erfinv(mpf(x)))
        return y / x
    fit("erf_inv f32: P(w - 2.5), w <= 5", 32, lambda v: by_w(v + 2.5), lambda v: 1, "-2.5", "2.5", 10)
    fit("erf_inv f32: Q(sqrt(w) - 3), 5 <= w <= 16.7", 32, lambda v: by_w((v + 3) ** 2), lambda v: 1,
        M.sqrt(5) - 3, "1.09", 10)
    fit("erf_inv f64 guess: P(w - 2.5), w <= 5", 64, lambda v: by_w(v + 2.5), lambda v: 1, "-2.5", "2.5", 8)
    fit("erf_inv f64 guess: Q(sqrt(w) - 4), 5 <= w <= 38", 64, lambda v: by_w((v + 4) ** 2), lambda v: 1,
        M.sqrt(5) - 4, "2.2", 9)


@job
def lgamma():
    """lgamma(1+z) = z P(z), lgamma(2+z) = z Q(z), |z| <= 0.5; a >= 8: Stirling's correction is R(1/a^2) / a."""
    P = lambda z: M.loggamma(1 + nz(z)) / nz(z)
    Q = lambda z: M.loggamma(2 + nz(z)) / nz(z)
    def R(w):
        if w < mpf(10) ** -12:
            return mpf(1) / 12 - w / 360
        a = 1 / M.sqrt(w)
        return a * (M.loggamma(a) - (a - mpf(1) / 2) * M.log(a) + a - M.log(2 * M.pi) / 2)
    fit("lgamma f32: P(z)", 32, P, lambda z: 1 / P(z), "-0.5", "0.5", 11)
    fit("lgamma f32: Q(z)", 32, Q, lambda z: 1 / Q(z), "-0.5", "0.5", 7)
    fit("lgamma f32: R(w), a >= 8", 32, R, lambda w: 1, 0, mpf(1) / 64, 1)
    fit("lgamma f64: P(z)", 64, P, lambda z: 1 / P(z), "-0.5", "0.5", 26)
    fit("lgamma f64: Q(z)", 64, Q, lambda z: 1 / Q(z), "-0.5", "0.5", 17)
    fit("lgamma f64: R(w), a >= 8", 64, R, lambda w: 1, 0, mpf(1) / 64, 7)


@job
def atan():
    g = lambda z: (M.atan(M.sqrt(nz(z))) / M.sqrt(nz(z)) - 1) / nz(z)
    fit("atan f32: P(z), atan q = q + q z P(z), q <= 1", 32, g, lambda z: z, 0, 1, 8)
    fit("atan f64: P(z), q <= 1", 64, g, lambda z: z, 0, 1, 19)


@job
def sincospi():
    """sin(pi d) = d S(z), cos(pi d) = C(z), z = d^2, d <= 1/4."""
    s = lambda z: M.sinpi(M.sqrt(nz(z))) / M.sqrt(nz(z))
    c = lambda z: M.cospi(M.sqrt(nz(z)))
    fit("sinpi f32: S", 32, s, lambda z: 1, 0, mpf(1) / 16, 4)
    fit("cospi f32: C", 32, c, lambda z: 1, 0, mpf(1) / 16, 4)
    fit("sinpi f64: S", 64, s, lambda z: 1, 0, mpf(1) / 16, 8)
    fit("cospi f64: C", 64, c, lambda z: 1, 0, mpf(1) / 16, 8)


@job
def cbrt():
    """First guess of cbrt on [1, 8)."""
    fit("cbrt f32: guess", 32, lambda x: M.cbrt(x), lambda x: 1 / M.cbrt(x), 1, 8, 4)
    fit("cbrt f64: guess", 64, lambda x: M.cbrt(x), lambda x: 1 / M.cbrt(x), 1, 8, 4)


if __name__ == "__main__":
    for job_name in sys.argv[1:] or list(JOBS):
        JOBS[job_name]()
