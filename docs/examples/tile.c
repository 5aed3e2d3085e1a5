/*
 * Generates a 256 x 256 tile from the seeds of one chunk on any device that can, prints what it
 * cost. tile [URI]          default sim:rgu
 */
#include <stdio.h>
#include <stdlib.h>

#include <millrace/millrace.h>

#include "models/golden/rgu.h" /* mr_rgu_pack(): seed arrays to the image that generators read */

static void check(mr_status status) {
    if (status == MR_OK)
        return;
    fprintf(stderr, "%s: %s\n", mr_status_name(status), mr_last_error());
    exit(1);
}

int main(int argc, char **argv) {
    enum { D = 256, PLANES = 8 * 7 / 2 };
    static int16_t angles[2 * PLANES] = {8192, -1500, 300}; /* pi/4, ...; the others 0 */
    float gain = 1.0f;
    uint8_t odd = 0;
    mr_seed seed = {
        .n = 8, .terms = 1, .d_out = D, .d_in = D, .angles = angles, .gain = &gain, .odd = &odd};
    size_t image_bytes = mr_rgu_image_bytes(&seed);
    void *image = malloc(image_bytes);
    static uint16_t weights[D][D]; /* bf16 */
    mr_device *device;
    mr_queue *queue;
    mr_buffer *seeds, *tile;
    mr_event *done;
    mr_counters counters;
    if (!image)
        return 1;
    mr_rgu_pack(&seed, image);

    check(mr_device_open(argc > 1 ? argv[1] : "sim:rgu", &device));
    check(mr_queue_create(device, &queue));
    check(mr_buffer_create(device, image_bytes, &seeds));
    check(mr_buffer_create(device, sizeof weights, &tile));
    check(mr_buffer_write(seeds, 0, image, image_bytes));

    mr_rgu_job job = mr_rgu_job_init();
    job.n = 8;
    job.chunks_in = job.chunks_out = 1;
    job.d_in = job.d_out = job.row1 = job.col1 = D;
    job.dst_stride = sizeof weights[0];
    check(mr_rgu_tile(queue, &job, (mr_view){seeds, 0}, (mr_view){NULL, 0}, (mr_view){tile, 0},
                      &done));
    check(mr_event_wait(done, 60 * 1000000000ull)); /* or MR_TIMEOUT after a minute */
    check(mr_event_counters(done, &counters));
    check(mr_buffer_read(tile, 0, weights, sizeof weights));

    printf("w[0][0] = 0x%04x (bf16), %llu cycles\n", weights[0][0],
           (unsigned long long)counters.cycles);
    check(mr_event_destroy(done));
    check(mr_device_close(device)); /* its queues and buffers with it */
    free(image);
    return 0;
}
