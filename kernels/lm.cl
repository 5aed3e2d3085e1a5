/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels of a mixture-of-experts language model (models/zoo/FORMAT.md), bar the generation of
 * weights. Activations are float32, matrices bf16 or 2-bit codewords, row-major [out, in].
 *
 * Nothing here needs memory of the group or barriers: an item computes its results alone, in an
 * order that does not depend on the back end, so results differ between back ends only where exp()
 * does. Every kernel takes the number of its items, `items`, and ignores any beyond it. All
 * addresses are used element by element: any view that is aligned to its element works.
 */
#include "kernels/mr_portable.h"

/* Lanes of a dot product: lane l sums the columns l, l+16, ..; then the lanes are added as a tree.
 */
#define LM_LANES 16
/* Vectors that share one pass over a matrix row. */
#define LM_BLOCK 4

/* In C the inner loops are compiled for the vector units there are; chosen when the program loads.
 */
#if defined(MR_ENTRY) || !defined(__x86_64__) || defined(__clang__)
#define LM_HOT MR_FN
#else
#define LM_HOT __attribute__((target_clones("avx512f", "avx2", "default"), optimize("O3"))) static
#endif

MR_FN float lm_bf16(mr_u16 x) { return mr_as_f32((mr_u32)x << 16); }

MR_FN float lm_tree(float *a) {
    for (mr_i32 h = LM_LANES / 2; h > 0; h /= 2)
        for (mr_i32 l = 0; l < h; l++)
            a[l] += a[l + h];
    return a[0];
}

/* ---- embedding, normalisation, position -------------------------------------------------------
 */

/* y[t][:] = table[token[t]][:]; a token outside 0..vocab-1 gives zeros. items = count * dim. */
MR_KERNEL_6(lm_embed, MR_GLOBAL float *, y, MR_GLOBAL const mr_u16 *, table,
            MR_GLOBAL const mr_i32 *, token, mr_i32, dim, mr_i32, vocab, mr_i32, items) {
    MR_ITEMS(i) {
        if (i < items) {
            mr_i32 id = token[i / dim];
            y[i] = id >= 0 && id < vocab ? lm_bf16(table[(mr_i64)id * dim + i % dim]) : 0.0f;
        }
    }
}

/* y = x * (mean(x^2) + eps)^(-1/2) * g, a vector an item. y may be x. items = vectors. */
MR_KERNEL_6(lm_rmsnorm, MR_GLOBAL float *, y, MR_GLOBAL const float *, x, MR_GLOBAL const float *,
            g, mr_i32, dim, float, eps, mr_i32, items) {
    MR_ITEMS(i) {
        if (i < items) {
            MR_GLOBAL const float *in = x + i * dim;
            MR_GLOBAL float *out = y + i * dim;
            float sum[LM_LANES] = {0};
            for (mr_i32 c = 0; c < dim; c++)
                sum[c % LM_LANES] += in[c] * in[c];
            float r = 1.0f / mr_sqrt(lm_tree(sum) / (float)dim + eps);
            for (mr_i32 c = 0; c < dim; c++)
                out[c] = in[c] * r * g[c];
        }
    }
}

/*
 * Turns the pairs (j, j + pairs) of every head of x[t] (rows `stride` apart, `heads` heads of 2
 * pairs values) by the angle of position pos0 + t; cosine and sine are tables [position][pairs].
 * items = vectors * heads * pairs.
 */
MR_KERNEL_8(lm_rope, MR_GLOBAL float *, x, MR_GLOBAL const float *, cosine, MR_GLOBAL const float *,
            sine, mr_i32, heads, mr_i32, pairs, mr_i32, stride, mr_i32, pos0, mr_i32, items) {
    MR_ITEMS(i) {
        if (i < items) {
            mr_i32 j = (mr_i32)(i % pairs), h = (mr_i32)(i / pairs % heads);
            mr_i64 t = i / pairs / heads;
            MR_GLOBAL float *u = x + t * stride + (mr_i64)h * 2 * pairs;
            float c = cosine[(pos0 + t) * pairs + j], s = sine[(pos0 + t) * pairs + j];
            float a = u[j], b = u[j + pairs];
            u[j] = a * c - b * s;
            u[j + pairs] = b * c + a * s;
        }
    }
}

/* ---- matrix times vectors ---------------------------------------------------------------------
 */

LM_HOT void lm_dot_bf16(float *out, MR_GLOBAL const mr_u16 *w, MR_GLOBAL const float *x0,
                        MR_GLOBAL const float *x1, MR_GLOBAL const float *x2,
                        MR_GLOBAL const float *x3, mr_i32 cols) {
    float a0[LM_LANES] = {0}, a1[LM_LANES] = {0}, a2[LM_LANES] = {0}, a3[LM_LANES] = {0};
    mr_i32 whole = cols - cols % LM_LANES;
    for (mr_i32 c = 0; c < whole; c += LM_LANES)
        for (mr_i32 l = 0; l < LM_LANES; l++) {
            float v = lm_bf16(w[c + l]);
            a0[l] += v * x0[c + l];
            a1[l] += v * x1[c + l];
            a2[l] += v * x2[c + l];
            a3[l] += v * x3[c + l];
        }
    for (mr_i32 c = whole; c < cols; c++) {
        float v = lm_bf16(w[c]);
        a0[c - whole] += v * x0[c];
        a1[c - whole] += v * x1[c];
        a2[c - whole] += v * x2[c];
        a3[c - whole] += v * x3[c];
    }
    out[0] = lm_tree(a0);
    out[1] = lm_tree(a1);
    out[2] = lm_tree(a2);
    out[3] = lm_tree(a3);
}

LM_HOT float lm_dot_bf16_one(MR_GLOBAL const mr_u16 *w, MR_GLOBAL const float *x, mr_i32 cols) {
    float a[LM_LANES] = {0};
    mr_i32 whole = cols - cols % LM_LANES;
    for (mr_i32 c = 0; c < whole; c += LM_LANES)
        for (mr_i32 l = 0; l < LM_LANES; l++)
            a[l] += lm_bf16(w[c + l]) * x[c + l];
    for (mr_i32 c = whole; c < cols; c++)
        a[c - whole] += lm_bf16(w[c]) * x[c];
    return lm_tree(a);
}

/* The row of x (or y) that vector t uses: index[t] / div, or t where there is no index. */
MR_FN mr_i64 lm_row(MR_GLOBAL const mr_i32 *index, mr_i32 div, mr_i64 t) {
    return index ? index[t] / div : t;
}

/*
 * y[out(t)][r] = W[r][:] . x[in(t)][:] (+ what was there, with add) for t < count, r < rows.
 * in(t) = in_index[t] / in_div and out(t) = out_index[t], or t where the index is null.
 * W is bf16. items = rows * ceil(count / 4).
 */
MR_KERNEL_13(lm_matmul, MR_GLOBAL float *, y, MR_GLOBAL const mr_u16 *, w, MR_GLOBAL const float *,
             x, MR_GLOBAL const mr_i32 *, in_index, mr_i32, in_div, MR_GLOBAL const mr_i32 *,
             out_index, mr_i32, rows, mr_i32, cols, mr_i32, count, mr_i32, y_stride, mr_i32,
             x_stride, mr_i32, add, mr_i32, items) {
    MR_ITEMS(i) {
        if (i < items) {
            mr_i64 t0 = i / rows * LM_BLOCK;
            mr_i32 r = (mr_i32)(i % rows);
            mr_i32 n = count - t0 < LM_BLOCK ? (mr_i32)(count - t0) : LM_BLOCK;
            MR_GLOBAL const mr_u16 *row = w + (mr_i64)r * cols;
            float sum[LM_BLOCK];
            if (n == LM_BLOCK) {
                lm_dot_bf16(sum, row, x + lm_row(in_index, in_div, t0) * x_stride,
                            x + lm_row(in_index, in_div, t0 + 1) * x_stride,
                            x + lm_row(in_index, in_div, t0 + 2) * x_stride,
                            x + lm_row(in_index, in_div, t0 + 3) * x_stride, cols);
            } else {
                for (mr_i32 k = 0; k < n; k++)
                    sum[k] =
                        lm_dot_bf16_one(row, x + lm_row(in_index, in_div, t0 + k) * x_stride, cols);
            }
            for (mr_i32 k = 0; k < n; k++) {
                MR_GLOBAL float *to = y + lm_row(out_index, 1, t0 + k) * y_stride + r;
                *to = add ? *to + sum[k] : sum[k];
            }
        }
    }
}

/* Four dot products with one row of codewords; columns past the last whole 16 come one by one. */
LM_HOT void lm_dot_code(float *out, MR_GLOBAL const mr_u8 *codes, MR_GLOBAL const float *scales,
                        MR_GLOBAL const float *x0, MR_GLOBAL const float *x1,
                        MR_GLOBAL const float *x2, MR_GLOBAL const float *x3, mr_i32 cols,
                        mr_i32 group, mr_i32 bits) {
    float a0[LM_LANES] = {0}, a1[LM_LANES] = {0}, a2[LM_LANES] = {0}, a3[LM_LANES] = {0};
    float w[LM_LANES];
    for (mr_i32 c = 0; c < cols; c += LM_LANES) {
        mr_i32 n = cols - c < LM_LANES ? cols - c : LM_LANES;
        mr_u32 word = 0;
        for (mr_i32 b = 0; b < n * bits / 8; b++)
            word |= (mr_u32)codes[c * bits / 8 + b] << (8 * b);
        if (bits == 2) {
            for (mr_i32 l = 0; l < LM_LANES; l++) {
                /* -1, -1/3, 1/3, 1 from the bits of 1.0f and 1.0f / 3.0f: no branch on the data */
                mr_u32 code = word >> (2 * l) & 3u, inner = (code ^ code >> 1) & 1u;
                w[l] = mr_as_f32((0x3F800000u - inner * 0xD55555u) | (~code & 2u) << 30);
            }
        } else {
            for (mr_i32 l = 0; l < LM_LANES; l++)
                w[l] = mr_as_f32(0x3F800000u | (~(word >> l) & 1u) << 31);
        }
        if (group % LM_LANES == 0) {
            float scale = scales[c / group];
            for (mr_i32 l = 0; l < LM_LANES; l++)
                w[l] = scale * w[l];
        } else {
            for (mr_i32 l = 0; l < n; l += 4) {
                float scale = scales[(c + l) / group];
                for (mr_i32 k = l; k < l + 4; k++)
                    w[k] = scale * w[k];
            }
        }
        if (n == LM_LANES) {
            for (mr_i32 l = 0; l < LM_LANES; l++) {
                a0[l] += w[l] * x0[c + l];
                a1[l] += w[l] * x1[c + l];
                a2[l] += w[l] * x2[c + l];
                a3[l] += w[l] * x3[c + l];
            }
        } else {
            for (mr_i32 l = 0; l < n; l++) {
                a0[l] += w[l] * x0[c + l];
                a1[l] += w[l] * x1[c + l];
                a2[l] += w[l] * x2[c + l];
                a3[l] += w[l] * x3[c + l];
            }
        }
    }
    out[0] = lm_tree(a0);
    out[1] = lm_tree(a1);
    out[2] = lm_tree(a2);
    out[3] = lm_tree(a3);
}

/*
 * The same with W in codewords of 1 or 2 bits, low bits first: column c of row r is
 * scales[r][c / group] times the level {-1, -1/3, 1/3, 1}[code], or {-1, 1}[code] with one bit, one
 * product rounded to float32. The scales are float32; `group` divides cols and is a multiple of 4;
 * the codes of a row fill whole bytes. items = rows * ceil(count / 4).
 */
MR_KERNEL_16(lm_matmul_code, MR_GLOBAL float *, y, MR_GLOBAL const mr_u8 *, codes,
             MR_GLOBAL const float *, scales, MR_GLOBAL const float *, x, MR_GLOBAL const mr_i32 *,
             in_index, mr_i32, in_div, MR_GLOBAL const mr_i32 *, out_index, mr_i32, rows, mr_i32,
             cols, mr_i32, group, mr_i32, bits, mr_i32, count, mr_i32, y_stride, mr_i32, x_stride,
             mr_i32, add, mr_i32, items) {
    MR_ITEMS(i) {
        if (i < items) {
            mr_i64 t0 = i / rows * LM_BLOCK, r = i % rows;
            mr_i32 n = count - t0 < LM_BLOCK ? (mr_i32)(count - t0) : LM_BLOCK;
            mr_i64 in[LM_BLOCK]; /* vectors past the last repeat it; their results are dropped */
            for (mr_i32 k = 0; k < LM_BLOCK; k++)
                in[k] = lm_row(in_index, in_div, t0 + (k < n ? k : n - 1)) * x_stride;
            float sum[LM_BLOCK];
            lm_dot_code(sum, codes + r * (cols * bits / 8), scales + r * (cols / group), x + in[0],
                        x + in[1], x + in[2], x + in[3], cols, group, bits);
            for (mr_i32 k = 0; k < n; k++) {
                MR_GLOBAL float *to = y + lm_row(out_index, 1, t0 + k) * y_stride + r;
                *to = add ? *to + sum[k] : sum[k];
            }
        }
    }
}

/* ---- attention --------------------------------------------------------------------------------
 */

LM_HOT float lm_dot(MR_GLOBAL const float *a, MR_GLOBAL const float *b, mr_i32 n) {
    float s[LM_LANES] = {0};
    mr_i32 whole = n - n % LM_LANES;
    for (mr_i32 c = 0; c < whole; c += LM_LANES)
        for (mr_i32 l = 0; l < LM_LANES; l++)
            s[l] += a[c + l] * b[c + l];
    for (mr_i32 c = whole; c < n; c++)
        s[c - whole] += a[c] * b[c];
    return lm_tree(s);
}

LM_HOT void lm_scale_add(MR_GLOBAL float *o, float keep, float p, MR_GLOBAL const float *v,
                         mr_i32 n) {
    for (mr_i32 j = 0; j < n; j++)
        o[j] = o[j] * keep + p * v[j];
}

/*
 * One query head over keys first..last-1: m the largest logit, d = sum exp(logit - m),
 * o = sum exp(logit - m) v. No key, or none but logits of -Inf: m = -Inf, d = 0, o = 0.
 */
MR_FN void lm_attend(MR_GLOBAL const float *q, MR_GLOBAL const float *k, MR_GLOBAL const float *v,
                     mr_i64 stride, mr_i32 first, mr_i32 last, mr_i32 dim, float scale, float *m,
                     float *d, MR_GLOBAL float *o) {
    float top = -MR_INFINITY, sum = 0.0f;
    for (mr_i32 j = 0; j < dim; j++)
        o[j] = 0.0f;
    for (mr_i32 at = first; at < last; at++) {
        float s = lm_dot(q, k + at * stride, dim) * scale;
        if (s == -MR_INFINITY)
            continue; /* exp(-Inf - -Inf) would be NaN; such a key weighs nothing */
        float next = s > top ? s : top;
        float keep = next == top ? 1.0f : mr_exp(top - next); /* 0 while top is -Inf */
        float p = mr_exp(s - next);
        lm_scale_add(o, keep, p, v + at * stride, dim);
        sum = sum * keep + p;
        top = next;
    }
    *m = top;
    *d = sum;
}

/*
 * Causal attention of `count` queries at positions pos0.. over the cache, whose rows (one a
 * position) are kv_stride apart and hold kv_heads heads of dim values. Query head a reads
 * key/value head a / (heads / kv_heads). Query and output rows are q_stride and o_stride apart.
 * items = count * heads.
 */
MR_KERNEL_13(lm_attention, MR_GLOBAL float *, o, MR_GLOBAL const float *, q,
             MR_GLOBAL const float *, k, MR_GLOBAL const float *, v, mr_i32, heads, mr_i32,
             kv_heads, mr_i32, dim, mr_i32, pos0, mr_i32, q_stride, mr_i32, kv_stride, mr_i32,
             o_stride, float, scale, mr_i32, items) {
    MR_ITEMS(i) {
        if (i < items) {
            mr_i64 t = i / heads;
            mr_i32 h = (mr_i32)(i % heads), kv = h / (heads / kv_heads) * dim;
            MR_GLOBAL float *out = o + t * o_stride + (mr_i64)h * dim;
            float m, d;
            lm_attend(q + t * q_stride + (mr_i64)h * dim, k + kv, v + kv, kv_stride, 0,
                      pos0 + (mr_i32)t + 1, dim, scale, &m, &d, out);
            for (mr_i32 j = 0; j < dim; j++)
                out[j] = d > 0.0f ? out[j] / d : 0.0f;
        }
    }
}

/*
 * Decode over the keys first..last-1, one shard of the cache: m[heads], d[heads] and the
 * unnormalised o[heads][dim], logits in base e. items = heads.
 */
MR_KERNEL_14(lm_attention_decode, MR_GLOBAL float *, m, MR_GLOBAL float *, d, MR_GLOBAL float *, o,
             MR_GLOBAL const float *, q, MR_GLOBAL const float *, k, MR_GLOBAL const float *, v,
             mr_i32, heads, mr_i32, kv_heads, mr_i32, dim, mr_i32, first, mr_i32, last, mr_i32,
             kv_stride, float, scale, mr_i32, items) {
    MR_ITEMS(i) {
        if (i < items) {
            mr_i32 h = (mr_i32)i, kv = h / (heads / kv_heads) * dim;
            float mm, dd;
            lm_attend(q + i * dim, k + kv, v + kv, kv_stride, first, last, dim, scale, &mm, &dd,
                      o + i * dim);
            m[i] = mm;
            d[i] = dd;
        }
    }
}

/*
 * Merges `parts` partial results, part p at m + p heads, d + p heads, o + p heads dim, into
 * out[heads][dim], normalised, and the merged m and d. A part with d = 0 is empty, whatever its m
 * says; if all are, the result is m = -Inf, d = 0, out = 0. items = heads.
 */
MR_KERNEL_9(lm_attention_merge, MR_GLOBAL float *, out, MR_GLOBAL float *, out_m, MR_GLOBAL float *,
            out_d, MR_GLOBAL const float *, m, MR_GLOBAL const float *, d, MR_GLOBAL const float *,
            o, mr_i32, parts, mr_i32, dim, mr_i32, items) {
    MR_ITEMS(i) {
        if (i < items) {
            float top = -MR_INFINITY, sum = 0.0f;
            for (mr_i32 p = 0; p < parts; p++)
                if (d[p * items + i] > 0.0f && m[p * items + i] > top)
                    top = m[p * items + i];
            for (mr_i32 p = 0; p < parts; p++)
                if (d[p * items + i] > 0.0f)
                    sum += mr_exp(m[p * items + i] - top) * d[p * items + i];
            for (mr_i32 j = 0; j < dim; j++) {
                float a = 0.0f;
                for (mr_i32 p = 0; p < parts; p++)
                    if (d[p * items + i] > 0.0f)
                        a += mr_exp(m[p * items + i] - top) * o[(p * items + i) * dim + j];
                out[i * dim + j] = sum > 0.0f ? a / sum : 0.0f;
            }
            out_m[i] = top;
            out_d[i] = sum;
        }
    }
}

/* ---- routing ----------------------------------------------------------------------------------
 */

/*
 * The k largest of each row of logits[t][experts], largest first, a tie (+0 and -0 tie) to the
 * lowest id, all distinct; NaN counts as below everything. weight = softmax over the chosen; where
 * the largest is infinite the chosen that equal it share evenly. items = rows.
 */
MR_KERNEL_6(lm_topk, MR_GLOBAL mr_i32 *, id, MR_GLOBAL float *, weight, MR_GLOBAL const float *,
            logits, mr_i32, experts, mr_i32, k, mr_i32, items) {
    MR_ITEMS(i) {
        if (i < items) {
            MR_GLOBAL const float *l = logits + i * experts;
            MR_GLOBAL mr_i32 *chosen = id + i * k;
            for (mr_i32 c = 0; c < k; c++) {
                mr_i32 best = -1;
                for (mr_i32 e = 0; e < experts; e++) {
                    mr_i32 taken = 0;
                    for (mr_i32 p = 0; p < c; p++)
                        taken |= chosen[p] == e;
                    /* written so that a NaN never wins against a number and loses no tie to one */
                    if (!taken &&
                        (best < 0 || l[e] > l[best] || (l[best] != l[best] && l[e] == l[e])))
                        best = e;
                }
                chosen[c] = best;
            }
            float top = k > 0 && chosen[0] >= 0 ? l[chosen[0]] : 0.0f, sum = 0.0f;
            mr_i32 edge = top == MR_INFINITY || top == -MR_INFINITY || top != top;
            for (mr_i32 c = 0; c < k; c++) {
                float v = chosen[c] >= 0 ? l[chosen[c]] : top;
                float p = edge ? (v == top || (v != v && top != top) ? 1.0f : 0.0f)
                               : (v == v ? mr_exp(v - top) : 0.0f);
                p = chosen[c] >= 0 ? p : 0.0f; /* more asked for than there are */
                weight[i * k + c] = p;
                sum += p;
            }
            for (mr_i32 c = 0; c < k; c++)
                weight[i * k + c] = sum > 0.0f ? weight[i * k + c] / sum : 0.0f;
        }
    }
}

/*
 * Sorts the `entries` routed ids by expert: list[e][0 .. counts[e]-1] are the entries whose id is
 * e, ascending, rows of the list `entries` long. Ids outside 0..experts-1 are skipped;
 * counts[experts] says how many were. items = experts + 1.
 */
MR_KERNEL_6(lm_group, MR_GLOBAL mr_i32 *, counts, MR_GLOBAL mr_i32 *, list,
            MR_GLOBAL const mr_i32 *, id, mr_i32, entries, mr_i32, experts, mr_i32, items) {
    MR_ITEMS(i) {
        if (i < items) {
            mr_i32 n = 0;
            for (mr_i32 t = 0; t < entries; t++) {
                if (i == experts)
                    n += id[t] < 0 || id[t] >= experts;
                else if (id[t] == (mr_i32)i)
                    list[i * entries + n++] = t;
            }
            counts[i] = n;
        }
    }
}

/* y[t] += sum_c weight[t][c] * slots[t k + c] over the valid ids of t. items = tokens * dim. */
MR_KERNEL_8(lm_combine, MR_GLOBAL float *, y, MR_GLOBAL const float *, slots,
            MR_GLOBAL const float *, weight, MR_GLOBAL const mr_i32 *, id, mr_i32, experts, mr_i32,
            k, mr_i32, dim, mr_i32, items) {
    MR_ITEMS(i) {
        if (i < items) {
            mr_i64 t = i / dim, j = i % dim;
            float a = 0.0f;
            for (mr_i32 c = 0; c < k; c++) {
                mr_i32 e = id[t * k + c];
                /* a skipped slot was never written: it may hold anything, NaN included */
                if (e >= 0 && e < experts)
                    a += weight[t * k + c] * slots[(t * k + c) * dim + j];
            }
            y[i] += a;
        }
    }
}

/* ---- element by element -----------------------------------------------------------------------
 */

/* y = silu(a) b, silu(a) = a / (1 + exp(-a)). y may be a or b. */
MR_KERNEL_4(lm_swiglu, MR_GLOBAL float *, y, MR_GLOBAL const float *, a, MR_GLOBAL const float *, b,
            mr_i32, items) {
    MR_ITEMS(i) {
        if (i < items)
            y[i] = a[i] / (1.0f + mr_exp(-a[i])) * b[i];
    }
}

/* y[t][:] = x[index[t] / div][:], the input rows of an expert. items = count * dim. */
MR_KERNEL_6(lm_gather, MR_GLOBAL float *, y, MR_GLOBAL const float *, x, MR_GLOBAL const mr_i32 *,
            index, mr_i32, div, mr_i32, dim, mr_i32, items) {
    MR_ITEMS(i) {
        if (i < items)
            y[i] = x[lm_row(index, div, i / dim) * dim + i % dim];
    }
}

/* y[index[t]][:] = x[t][:], an expert's results back to their slots. items = count * dim. */
MR_KERNEL_5(lm_scatter, MR_GLOBAL float *, y, MR_GLOBAL const float *, x, MR_GLOBAL const mr_i32 *,
            index, mr_i32, dim, mr_i32, items) {
    MR_ITEMS(i) {
        if (i < items)
            y[lm_row(index, 1, i / dim) * dim + i % dim] = x[i];
    }
}
