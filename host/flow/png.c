/* SPDX-License-Identifier: Apache-2.0 */
#include "host/flow/png.h"

#include <png.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "host/core/error.h"
#include "host/io/file.h"

enum { LINE = 96, LARGEST = 1 << 15 };

static void paint(uint8_t *grid, size_t width, const uint8_t *images, size_t count, size_t side,
                  size_t zoom, size_t columns) {
    size_t cell = side * zoom + 1;
    for (size_t i = 0; i < count; i++)
        for (size_t r = 0; r < side * zoom; r++)
            for (size_t c = 0; c < side * zoom; c++)
                grid[(i / columns * cell + r) * width + i % columns * cell + c] =
                    images[(i * side + r / zoom) * side + c / zoom];
}

/* libpng reports through longjmp: nothing that is changed after setjmp is looked at after it. */
static int encode(FILE *f, const uint8_t *grid, size_t width, size_t height) {
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    if (!info || setjmp(png_jmpbuf(png))) {
        png_destroy_write_struct(&png, &info);
        return -1;
    }
    png_init_io(png, f);
    png_set_IHDR(png, info, (png_uint_32)width, (png_uint_32)height, 8, PNG_COLOR_TYPE_GRAY,
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png, info);
    for (size_t r = 0; r < height; r++)
        png_write_row(png, grid + r * width);
    png_write_end(png, NULL);
    png_destroy_write_struct(&png, &info);
    return 0;
}

mr_status mr_png_grid(const char *path, const uint8_t *images, size_t count, size_t side,
                      size_t zoom) {
    size_t columns = 1, cell = side * zoom + 1;
    while (columns * columns < count)
        columns++;
    size_t width = columns * cell - 1, height = (count + columns - 1) / columns * cell - 1;
    if (!count || width > LARGEST || height > LARGEST)
        return mr_fail(MR_INVALID_ARGUMENT, "%s: a picture of %zux%zu pixels", path, width, height);
    uint8_t *grid = malloc(width * height);
    if (!grid)
        return mr_fail(MR_OUT_OF_MEMORY, "%s: out of memory", path);
    memset(grid, LINE, width * height);
    paint(grid, width, images, count, side, zoom, columns);
    mr_file f;
    mr_status e = mr_file_create(path, &f);
    if (e == MR_OK && encode(f.f, grid, width, height) != 0) {
        mr_file_abandon(&f);
        e = mr_fail(MR_IO_ERROR, "%s: cannot write the picture", path);
    } else if (e == MR_OK) {
        e = mr_file_commit(&f);
    }
    free(grid);
    return e;
}
