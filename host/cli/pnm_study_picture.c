/* SPDX-License-Identifier: Apache-2.0 */
/* The pictures of `millrace pnm study`: SVG files that need nothing else. */
#include "host/cli/pnm_study.h"

#include <math.h>
#include <stdlib.h>

#include "host/cli/zoo.h"
#include "host/io/file.h"

enum { WIDTH = 640, HEIGHT = 400, LEFT = 76, RIGHT = 24, TOP = 40, BOTTOM = 96 };
static const char *const colours[] = {"#c1272d", "#0b6fa4", "#2e7d32", "#b26a00",
                                      "#6a3d9a", "#444444", "#00838f", "#ad1457"};
enum { COLOURS = sizeof colours / sizeof colours[0] };

static void begin(FILE *f, int height, const char *title) {
    fprintf(f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
            "font-family=\"sans-serif\" font-size=\"12\" fill=\"#222\">\n"
            "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n"
            "<text x=\"%d\" y=\"22\" font-size=\"14\" font-weight=\"bold\">%s</text>\n",
            WIDTH, height, WIDTH, WIDTH, height, LEFT, title);
}

/* ---- cycles against error ---------------------------------------------------------------------
 */

typedef struct {
    char name[48];
    double x[PNM_LENGTHS], y[PNM_LENGTHS];
} line;

static double place(double v, double least, double most, double from, double to) {
    return from + log(v / least) / log(most / least) * (to - from);
}

/* 1, 2, 5, 10, 20 ...: i counts them from 1 on, or back. */
static double value(int i) {
    static const double steps[] = {1, 2, 5};
    int within = ((i % 3) + 3) % 3;
    int decade = (i - within) / 3;
    return steps[within] * pow(10, decade);
}

static void grid(FILE *f, double x0, double x1, double y0, double y1) {
    double bottom = HEIGHT - BOTTOM, right = WIDTH - RIGHT;
    char text[16];
    for (int i = 3 * (int)floor(log10(y0)); i <= 3 * (int)ceil(log10(y1)); i++) {
        double v = value(i), y = place(v, y0, y1, bottom, TOP);
        if (v >= y0 && v <= y1)
            fprintf(f,
                    "<path d=\"M%d %.1fH%.0f\" stroke=\"#ddd\"/><text x=\"%d\" y=\"%.1f\" "
                    "text-anchor=\"end\">%.0f</text>\n",
                    LEFT, y, right, LEFT - 6, y + 4, v);
    }
    for (int i = 3 * (int)floor(log10(x0)); i <= 3 * (int)ceil(log10(x1)); i++) {
        double v = value(i), x = place(v, x0, x1, LEFT, right);
        bool two = ((i % 3) + 3) % 3 == 1; /* its label would meet the one before */
        snprintf(text, sizeof text, "%.3g", v);
        if (v >= x0 && v <= x1)
            fprintf(f,
                    "<path d=\"M%.1f %dV%.0f\" stroke=\"#ddd\"/><text x=\"%.1f\" y=\"%.0f\" "
                    "text-anchor=\"middle\">%s</text>\n",
                    x, TOP, bottom, x, bottom + 16, two ? "" : text);
    }
}

static void line_picture(FILE *f, const char *title, const line *l, int count,
                         int height_of_names) {
    double x0 = 1e9, x1 = 1e-9, y0 = 1e9, y1 = 1e-9;
    for (int i = 0; i < count; i++)
        for (int k = 0; k < PNM_LENGTHS; k++)
            if (l[i].x[k] > 0) {
                x0 = fmin(x0, l[i].x[k] * 0.9);
                x1 = fmax(x1, l[i].x[k] * 1.1);
                y0 = fmin(y0, l[i].y[k] * 0.9);
                y1 = fmax(y1, l[i].y[k] * 1.1);
            }
    double bottom = HEIGHT - BOTTOM, right = WIDTH - RIGHT;
    begin(f, HEIGHT + height_of_names, title);
    grid(f, x0, x1, y0, y1);
    for (int i = 0; i < count; i++) {
        const char *colour = colours[i % COLOURS];
        int across = LEFT + i % 2 * 280, down = (int)bottom + 44 + i / 2 * 16;
        fprintf(f,
                "<g stroke=\"%s\" fill=\"%s\"><polyline fill=\"none\" stroke-width=\"2\"%s "
                "points=\"",
                colour, colour, i >= PNM_WIDTHS ? " stroke-dasharray=\"6 4\"" : "");
        for (int k = 0; k < PNM_LENGTHS; k++)
            if (l[i].x[k] > 0)
                fprintf(f, "%.1f,%.1f ", place(l[i].x[k], x0, x1, LEFT, right),
                        place(l[i].y[k], y0, y1, bottom, TOP));
        fprintf(f, "\"/>");
        for (int k = 0; k < PNM_LENGTHS; k++)
            if (l[i].x[k] > 0)
                fprintf(f, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\"/>",
                        place(l[i].x[k], x0, x1, LEFT, right),
                        place(l[i].y[k], y0, y1, bottom, TOP));
        fprintf(f,
                "</g>\n<rect x=\"%d\" y=\"%d\" width=\"10\" height=\"10\" fill=\"%s\"/>"
                "<text x=\"%d\" y=\"%d\">%s</text>\n",
                across, down, colour, across + 16, down + 9, l[i].name);
    }
    fprintf(f,
            "<text x=\"%.0f\" y=\"%.0f\" text-anchor=\"middle\">RMS error of a product, relative"
            "</text><text transform=\"translate(16 %.0f) rotate(-90)\" text-anchor=\"middle\">"
            "cycles an image</text></svg>\n",
            (LEFT + right) / 2, bottom + 32, (TOP + bottom) / 2);
}

static int latency(FILE *f, const pnm_study *s) {
    const pnm_case *c = &s->item[0];
    line l[PNM_WIDTHS + 4] = {0};
    char title[120];
    int count = 0;
    for (int w = 0; w < PNM_WIDTHS; w++, count++) {
        snprintf(l[count].name, sizeof l[count].name, "centred, %u stream bits a cycle",
                 pnm_study_widths[w]);
        for (int k = 0; k < PNM_LENGTHS; k++) {
            l[count].x[k] = s->stream[0].rms[k];
            l[count].y[k] = c->length[w][k];
        }
    }
    static const int others[] = {3, 4, 6, 8};
    for (int i = 0; i < 4; i++, count++) {
        snprintf(l[count].name, sizeof l[count].name, "%s, 16 bits", s->stream[others[i]].name);
        for (int k = 0; k < PNM_LENGTHS; k++) {
            l[count].x[k] = s->stream[others[i]].rms[k];
            l[count].y[k] = c->length[1][k];
        }
    }
    snprintf(title, sizeof title, "Latency against accuracy: %s scored, L = 4 to 256", c->flow);
    line_picture(f, title, l, count, 24);
    return 0;
}

/* ---- energy, stacked --------------------------------------------------------------------------
 */

static int energy(FILE *f, const pnm_study *s) {
    static const char *const names[] = {"DRAM",   "operands",   "multiply", "add",
                                        "vector", "scratchpad", "link"};
    enum { PARTS = 7, BAR = 15, GAP = 12, NAMES = 190 };
    int bars = PNM_OWN + PNM_RIVALS, height = TOP + (int)s->items * (bars * BAR + GAP + 16) + 30;
    begin(f, height, "Energy an image, the most of a flow = 100 %");
    double y = TOP;
    for (size_t i = 0; i < s->items; i++) {
        const pnm_case *c = &s->item[i];
        double most = 0;
        for (int k = 0; k < PNM_OWN; k++)
            most = fmax(most, c->own[k].energy.total);
        for (int k = 0; k < PNM_RIVALS; k++)
            most = fmax(most, c->rival[k].energy.total);
        fprintf(f, "<text x=\"10\" y=\"%.0f\" font-weight=\"bold\">%s, %s: %.3g uJ</text>\n",
                y + 12, c->flow, c->inverse ? "sample" : "score", most * 1e6);
        y += 16;
        for (int k = 0; k < bars; k++, y += BAR) {
            const pnm_result *r = k < PNM_OWN ? &c->own[k] : &c->rival[k - PNM_OWN];
            const mr_pnm_energy *e = &r->energy;
            const double part[PARTS] = {e->dram,   e->operands, e->multiply, e->accumulate,
                                        e->vector, e->scratch,  e->link};
            double x = NAMES, scale = (WIDTH - NAMES - RIGHT) / most;
            fprintf(f, "<text x=\"%d\" y=\"%.0f\" text-anchor=\"end\">%s</text>", NAMES - 8, y + 11,
                    k < PNM_OWN ? s->own[k].name : s->rival[k - PNM_OWN].name);
            for (int p = 0; p < PARTS; p++) {
                fprintf(f, "<rect x=\"%.1f\" y=\"%.0f\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>",
                        x, y, part[p] * scale, BAR - 3, colours[p]);
                x += part[p] * scale;
            }
            fputc('\n', f);
        }
        y += GAP;
    }
    for (int p = 0; p < PARTS; p++)
        fprintf(f,
                "<rect x=\"%d\" y=\"%.0f\" width=\"10\" height=\"10\" fill=\"%s\"/><text "
                "x=\"%d\" y=\"%.0f\">%s</text>\n",
                30 + p * 86, y + 4, colours[p], 44 + p * 86, y + 13, names[p]);
    fprintf(f, "</svg>\n");
    return 0;
}

static int write_one(const pnm_study *s, const char *folder, const char *name,
                     int (*print)(FILE *f, const pnm_study *s)) {
    char *path = cli_join(folder, name);
    if (!path)
        return cli_error(CLI_FAILED, "out of memory");
    mr_file f;
    mr_status e = mr_file_create(path, &f);
    if (e == MR_OK) {
        print(f.f, s);
        e = mr_file_commit(&f);
    }
    free(path);
    return e == MR_OK ? CLI_OK : cli_fail(e);
}

int pnm_study_pictures(const pnm_study *s, const char *folder) {
    int code = write_one(s, folder, "pnm-latency.svg", latency);
    return code == CLI_OK ? write_one(s, folder, "pnm-energy.svg", energy) : code;
}
