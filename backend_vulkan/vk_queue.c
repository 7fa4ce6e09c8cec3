/* vk_queue.c - submission and waiting: the two queues and their timeline semaphores.
 *
 * The compute queue runs its submissions in order, each after all uploads of the transfer queue that
 * were submitted before it. The transfer queue runs beside it. Waiting goes in slices, so that a device
 * lost on another thread ends every wait. */
#include <string.h>
#include <time.h>

#include "backend_vulkan/vk.h"

enum { BATCH = 32, SLICE_NS = 250 * 1000 * 1000 };

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Called with queue_lock held. */
static void remember(fx_bdevice *d, uint64_t number, const char *text) {
    vk_recent *r = &d->recent[d->n_recent++ % VK_RECENT];
    r->number = number;
    size_t n = strnlen(text, VK_SUMMARY - 1);
    memcpy(r->text, text, n);
    r->text[n] = '\0';
}

/* Submits n infos as one vkQueueSubmit that waits for `wait` (a semaphore and a number; 0: none) and
 * signals `number`. Called with queue_lock held. */
static VkResult submit_batch(fx_bdevice *d, vk_queue_index queue, uint32_t n, const VkCommandBuffer *cmds,
                             vk_queue_index wait_queue, uint64_t wait, uint64_t number) {
    static const VkPipelineStageFlags stages = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
    VkSubmitInfo infos[BATCH];
    for (uint32_t i = 0; i < n; i++)
        infos[i] = (VkSubmitInfo){
            .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &cmds[i]};
    VkTimelineSemaphoreSubmitInfo first = {.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO}, last = first;
    VkTimelineSemaphoreSubmitInfo *at_end = n > 1 ? &last : &first;
    if (wait) {
        first.waitSemaphoreValueCount = 1;
        first.pWaitSemaphoreValues = &wait;
        infos[0].waitSemaphoreCount = 1;
        infos[0].pWaitSemaphores = &d->timelines[wait_queue];
        infos[0].pWaitDstStageMask = &stages;
    }
    if (number) {
        at_end->signalSemaphoreValueCount = 1;
        at_end->pSignalSemaphoreValues = &number;
        infos[n - 1].signalSemaphoreCount = 1;
        infos[n - 1].pSignalSemaphores = &d->timelines[queue];
    }
    infos[0].pNext = &first;
    infos[n - 1].pNext = at_end;
    return d->vk.vkQueueSubmit(d->queues[queue], n, infos, VK_NULL_HANDLE);
}

/* The transfer number that the compute queue must still wait for, 0 when none. Called with queue_lock held. */
static uint64_t pending_transfers(fx_bdevice *d) {
    uint64_t t = atomic_load(&d->submitted[VK_QUEUE_TRANSFER]);
    return t > d->waited ? t : 0;
}

static uint64_t accept(fx_bdevice *d, vk_queue_index queue) {
    uint64_t number = d->next++;
    atomic_store(&d->submitted[queue], number);
    return number * 2 + queue;
}

fx_status fx_vk_submit_one(fx_bdevice *d, vk_queue_index queue, VkCommandBuffer cmds, uint64_t after, const char *text,
                           uint64_t *ticket) {
    FX_TRY(fx_vk_alive(d));
    pthread_mutex_lock(&d->queue_lock);
    vk_queue_index wait_queue = VK_QUEUE_TRANSFER;
    uint64_t wait = 0;
    if (queue == VK_QUEUE_COMPUTE)
        wait = pending_transfers(d);
    else if ((after & 1) == VK_QUEUE_COMPUTE) { /* what runs on the transfer queue itself is in order */
        wait_queue = VK_QUEUE_COMPUTE;
        wait = after / 2;
    }
    VkResult r = submit_batch(d, queue, 1, &cmds, wait_queue, wait, d->next);
    if (r == VK_SUCCESS) {
        if (queue == VK_QUEUE_COMPUTE && wait)
            d->waited = wait;
        remember(d, d->next, text);
        *ticket = accept(d, queue);
    }
    pthread_mutex_unlock(&d->queue_lock);
    return fx_vk_check(d, r, "a copy's submission");
}

fx_status fx_vk_submit(fx_bdevice *d, int n, fx_cmds *const *lists, uint64_t *ticket) {
    FX_TRY(fx_vk_alive(d));
    for (int i = 0; i < n; i++)
        if (!lists[i] || !fx_vk_cmds_buffer(lists[i]))
            return fx_backend_fail(FX_INVALID_ARGUMENT, "submit: list %d of %d is not finished; call cmds_end first", i,
                                   n);
    if (n <= 0) {
        if (ticket)
            *ticket = atomic_load(&d->submitted[VK_QUEUE_COMPUTE]) * 2;
        return FX_OK;
    }
    uint64_t t = 0;
    VkResult r = VK_SUCCESS;
    pthread_mutex_lock(&d->queue_lock);
    for (int i = 0; i < n; i++)
        remember(d, d->next, fx_vk_cmds_text(lists[i]));
    if (d->inject.device_lost && atomic_fetch_add(&d->n_submits, 1) + 1 == d->inject.device_lost) {
        d->vk.vkDeviceWaitIdle(d->handle); /* a lost device runs nothing any more */
        r = VK_ERROR_DEVICE_LOST;
    }
    uint64_t wait = pending_transfers(d);
    for (int i = 0; i < n && r == VK_SUCCESS; i += BATCH) {
        VkCommandBuffer cmds[BATCH];
        uint32_t m = n - i < BATCH ? (uint32_t)(n - i) : BATCH;
        for (uint32_t j = 0; j < m; j++)
            cmds[j] = fx_vk_cmds_buffer(lists[i + (int)j]);
        r = submit_batch(d, VK_QUEUE_COMPUTE, m, cmds, VK_QUEUE_TRANSFER, i ? 0 : wait, i + BATCH >= n ? d->next : 0);
    }
    if (r == VK_SUCCESS) {
        if (wait)
            d->waited = wait;
        t = accept(d, VK_QUEUE_COMPUTE);
    }
    pthread_mutex_unlock(&d->queue_lock);
    if (r != VK_SUCCESS)
        return fx_vk_check(d, r, "a submission");
    for (int i = 0; i < n; i++)
        fx_vk_cmds_submitted(lists[i], t);
    if (ticket)
        *ticket = t;
    return FX_OK;
}

bool fx_vk_ticket_done(fx_bdevice *d, uint64_t ticket) {
    uint64_t number = ticket / 2, value = 0;
    int q = (int)(ticket & 1);
    if (number <= atomic_load(&d->finished[q]))
        return true;
    if (d->vk.vkGetSemaphoreCounterValue(d->handle, d->timelines[q], &value) != VK_SUCCESS || value < number)
        return false;
    atomic_store(&d->finished[q], number); /* may step back when threads race: it is a hint */
    return true;
}

bool fx_vk_idle(fx_bdevice *d) {
    for (int q = 0; q < VK_QUEUES; q++)
        if (!fx_vk_ticket_done(d, atomic_load(&d->submitted[q]) * 2 + (uint64_t)q))
            return false;
    return true;
}

fx_status fx_vk_wait(fx_bdevice *d, uint64_t ticket, uint64_t timeout_ns, bool *done) {
    uint64_t number = ticket / 2;
    int q = (int)(ticket & 1);
    bool unused;
    if (!done)
        done = &unused;
    *done = false;
    if (number > atomic_load(&d->submitted[q]))
        return fx_backend_fail(FX_INVALID_ARGUMENT, "wait: ticket %llu was never given out by this device",
                               (unsigned long long)ticket);
    if (number <= atomic_load(&d->finished[q])) {
        *done = true;
        return FX_OK;
    }
    VkSemaphoreWaitInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                .semaphoreCount = 1,
                                .pSemaphores = &d->timelines[q],
                                .pValues = &number};
    uint64_t start = timeout_ns && timeout_ns != UINT64_MAX ? now_ns() : 0;
    for (;;) {
        FX_TRY(fx_vk_alive(d));
        uint64_t slice = SLICE_NS;
        if (timeout_ns != UINT64_MAX) {
            uint64_t passed = timeout_ns ? now_ns() - start : 0;
            uint64_t left = passed < timeout_ns ? timeout_ns - passed : 0;
            slice = left < slice ? left : slice;
        }
        VkResult r = d->vk.vkWaitSemaphores(d->handle, &info, slice);
        if (r == VK_SUCCESS)
            break;
        if (r != VK_TIMEOUT)
            return fx_vk_check(d, r, "waiting");
        if (slice < SLICE_NS)
            return FX_OK;
    }
    atomic_store(&d->finished[q], number);
    *done = true;
    return FX_OK;
}

fx_status fx_vk_wait_idle(fx_bdevice *d) {
    for (int q = 0; q < VK_QUEUES; q++)
        FX_TRY(fx_vk_wait(d, atomic_load(&d->submitted[q]) * 2 + (uint64_t)q, UINT64_MAX, NULL));
    return fx_vk_alive(d);
}
