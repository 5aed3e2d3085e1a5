/* SPDX-License-Identifier: Apache-2.0 */
/* The pictures: one HTML file with SVG in it, no script, nothing loaded from anywhere. */
#include "host/cli/study_report.h"

#include <math.h>
#include <string.h>

enum { WIDTH = 560, HEIGHT = 340, LEFT = 70, RIGHT = 20, TOP = 34, BOTTOM = 46, POINTS = 64 };

static const char *const colours[] = {"#c1272d", "#0b6fa4", "#2e7d32", "#b26a00",
                                      "#6a3d9a", "#444444", "#00838f", "#ad1457"};

typedef struct {
    const char *name;
    size_t n;
    double x[POINTS], y[POINTS];
} line;

typedef struct {
    const char *title, *x_name, *y_name;
    line lines[STUDY_MOST];
    size_t count;
} picture;

static double place(double v, double least, double most, double from, double to) {
    return from + (log(v) - log(least)) / (log(most) - log(least)) * (to - from);
}

static void tick(double v, char *out, size_t size) {
    static const char *const unit[] = {"n", "u", "m", "", "k", "M", "G", "T"};
    int i = 3;
    for (; v >= 999.5 && i < 7; i++)
        v /= 1000;
    for (; v < 0.9995 && i > 0; i--)
        v *= 1000;
    snprintf(out, size, "%.3g%s", v, unit[i]);
}

/* Both axes are logarithmic; values that are not above zero are left out. */
static void draw(FILE *f, const picture *p) {
    double x0 = INFINITY, x1 = 0, y0 = INFINITY, y1 = 0;
    for (size_t i = 0; i < p->count; i++)
        for (size_t k = 0; k < p->lines[i].n; k++) {
            x0 = fmin(x0, p->lines[i].x[k]);
            x1 = fmax(x1, p->lines[i].x[k]);
            y0 = fmin(y0, p->lines[i].y[k]);
            y1 = fmax(y1, p->lines[i].y[k]);
        }
    if (!(x1 > 0))
        return;
    if (x0 == x1) {
        x0 /= 2;
        x1 *= 2;
    }
    y0 = pow(10, floor(log10(y0) - 1e-9));
    y1 = pow(10, ceil(log10(y1) + 1e-9));
    double bottom = HEIGHT - BOTTOM, right = WIDTH - RIGHT;
    char text[32];
    fprintf(f,
            "<figure><svg viewBox=\"0 0 %d %d\" width=\"%d\" role=\"img\" aria-label=\"%s\">\n"
            "<text x=\"%d\" y=\"18\" class=\"t\">%s</text>\n",
            WIDTH, HEIGHT, WIDTH, p->title, LEFT, p->title);
    for (int i = 0; i <= (int)lround(log10(y1 / y0)); i++) {
        double v = y0 * pow(10, i);
        double y = place(v, y0, y1, bottom, TOP);
        tick(v, text, sizeof text);
        fprintf(f,
                "<line x1=\"%d\" x2=\"%.0f\" y1=\"%.1f\" y2=\"%.1f\" class=\"g\"/>"
                "<text x=\"%d\" y=\"%.1f\" class=\"y\">%s</text>\n",
                LEFT, right, y, y, LEFT - 6, y + 4, text);
    }
    for (int i = 0; i <= (int)lround(log2(x1 / x0)); i++) {
        double v = fmin(x0 * exp2(i), x1);
        double x = place(v, x0, x1, LEFT, right);
        if (v >= 1024) /* tokens */
            snprintf(text, sizeof text, "%.4gKi", v / 1024);
        else
            tick(v, text, sizeof text);
        fprintf(f, "<text x=\"%.1f\" y=\"%.0f\" class=\"x\">%s</text>\n", x, bottom + 16, text);
    }
    fprintf(f,
            "<text x=\"%.0f\" y=\"%d\" class=\"x\">%s</text><text transform=\"translate(14 %.0f) "
            "rotate(-90)\" class=\"x\">%s</text>\n",
            (LEFT + right) / 2, HEIGHT - 8, p->x_name, (TOP + bottom) / 2, p->y_name);
    for (size_t i = 0; i < p->count; i++) {
        const line *l = &p->lines[i];
        const char *colour = colours[i % (sizeof colours / sizeof colours[0])];
        /* dashes, so that a line on another does not hide it */
        fprintf(f, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\"%s points=\"", colour,
                i ? " stroke-dasharray=\"9 5\"" : "");
        for (size_t k = 0; k < l->n; k++)
            fprintf(f, "%.1f,%.1f ", place(l->x[k], x0, x1, LEFT, right),
                    place(l->y[k], y0, y1, bottom, TOP));
        fprintf(f, "\"/>\n");
        for (size_t k = 0; k < l->n; k++)
            fprintf(f, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>",
                    place(l->x[k], x0, x1, LEFT, right), place(l->y[k], y0, y1, bottom, TOP),
                    colour);
        fputc('\n', f);
    }
    fprintf(f, "</svg><figcaption>");
    for (size_t i = 0; i < p->count; i++)
        fprintf(f, "<span style=\"color:%s\">&#9632; %s</span> ",
                colours[i % (sizeof colours / sizeof colours[0])], p->lines[i].name);
    fprintf(f, "</figcaption></figure>\n");
}

static double p99(const study_row *r) { return r->run.result.ttft_p99_s; }
static double gap(const study_row *r) { return r->run.result.itl_mean_s; }

static void add(line *l, double x, const study_row *r, double (*figure)(const study_row *)) {
    double y = r ? figure(r) : 0;
    if (y > 0 && l->n < POINTS) {
        l->x[l->n] = x;
        l->y[l->n++] = y;
    }
}

typedef struct {
    const char *name;
    double (*figure)(const study_row *);
} measure;

static void replays(FILE *f, const study_report *o, const char *trace) {
    static const measure m[] = {{"mean TTFT, s", study_ttft},
                                {"99th percentile of TTFT, s", p99},
                                {"mean time between tokens, s", gap}};
    const study *s = o->s;
    for (size_t k = 0; k < sizeof m / sizeof m[0]; k++) {
        picture p = {.title = trace, .x_name = "load", .y_name = m[k].name};
        for (size_t i = 0; i < s->policies; i++) {
            line *l = &p.lines[p.count++];
            l->name = s->policy[i];
            double last = 0;
            for (size_t r = 0; r < o->count; r++) {
                const study_row *row = &o->rows[r];
                if (row->part != PART_REPLAY || strcmp(row->trace, trace) != 0 ||
                    strcmp(row->run.policy, s->policy[i]) != 0 || row->run.load == last)
                    continue;
                last = row->run.load;
                add(l, last,
                    study_find(o, PART_REPLAY, trace, s->policy[i], s->replay_nodes, last, 0, 0),
                    m[k].figure);
            }
        }
        draw(f, &p);
    }
}

static void scaling(FILE *f, const study_report *o) {
    const study *s = o->s;
    static const measure m[] = {{"output tokens/s", study_throughput},
                                {"mean TTFT, s", study_ttft}};
    for (size_t k = 0; k < sizeof m / sizeof m[0]; k++) {
        picture p = {
            .title = "load in proportion to nodes", .x_name = "nodes", .y_name = m[k].name};
        for (size_t i = 0; i < s->policies; i++) {
            line *l = &p.lines[p.count++];
            l->name = s->policy[i];
            for (size_t n = 0; n < s->scaling_nodes; n++)
                add(l, (double)s->scaling_node[n],
                    study_find(o, PART_SCALING, s->scaling_trace, s->policy[i], s->scaling_node[n],
                               s->load_per_node * (double)s->scaling_node[n], 0, 0),
                    m[k].figure);
        }
        draw(f, &p);
    }
}

static void contexts(FILE *f, const study_report *o, double cached, bool by_nodes) {
    static const measure m[] = {{"TTFT, s", study_ttft},
                                {"mean time between tokens, s", gap},
                                {"bytes for the prompt", study_prompt_bytes},
                                {"bytes a decoded token", study_decode_bytes}};
    const study *s = o->s;
    size_t middle = s->context_token[s->context_tokens / 2];
    char title[96];
    if (by_nodes)
        snprintf(title, sizeof title, "%zu tokens, %g %% cached", middle, 100 * cached);
    else
        snprintf(title, sizeof title, "%zu nodes, %g %% cached", s->replay_nodes, 100 * cached);
    for (size_t k = 0; k < sizeof m / sizeof m[0]; k++) {
        picture p = {.title = title,
                     .x_name = by_nodes ? "nodes" : "tokens of context",
                     .y_name = m[k].name};
        for (size_t i = 0; i < s->policies; i++) {
            line *l = &p.lines[p.count++];
            l->name = s->policy[i];
            for (size_t n = 0; n < (by_nodes ? s->context_nodes : s->context_tokens); n++)
                add(l, (double)(by_nodes ? s->context_node[n] : s->context_token[n]),
                    study_find(o, PART_CONTEXT, "one prompt", s->policy[i],
                               by_nodes ? s->context_node[n] : s->replay_nodes, 1, cached,
                               by_nodes ? middle : s->context_token[n]),
                    m[k].figure);
        }
        draw(f, &p);
    }
}

int study_print_page(FILE *f, const study_report *o) {
    const study *s = o->s;
    fprintf(f, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
               "<title>Millrace: study of the compute-NIC</title>\n<style>body{font:15px "
               "sans-serif;margin:24px;color:#222}figure{display:inline-block;margin:8px}"
               "figcaption{font-size:13px;max-width:560px}.t{font-weight:bold}"
               ".g{stroke:#ddd}.x{text-anchor:middle;font-size:12px}"
               ".y{text-anchor:end;font-size:12px}</style></head><body>\n"
               "<h1>Where the KV lies and what travels</h1>\n<p>Printed by <code>millrace nic "
               "study --page</code>. All axes are logarithmic.</p>\n");
    for (size_t t = 0; t < s->traces; t++)
        replays(f, o, s->trace[t].name);
    scaling(f, o);
    for (size_t c = 0; c < s->cached_shares; c++)
        for (int by_nodes = 0; by_nodes < 2; by_nodes++)
            contexts(f, o, s->cached_share[c], by_nodes);
    fprintf(f, "</body></html>\n");
    return 0;
}
