// Kernels of the gradient scaler: unscaling gradients, and choosing the next scale.
#include "common.cuh"

// Multiplies a gradient by a number, and sets a flag to 1 if an element is infinite or NaN. Many threads may
// set it at once, all to the same value.
template <typename T, typename C = calculated<T>>
__device__ void amp_unscale(const Input<float> &inv_scale, T *grad, const View &view, float *found_inf) {
    const float factor = inv_scale[0];
    const long long n = elements(view);
    for (long long i = first_element(); i < n; i += all_threads()) {
        T &element = grad[position(view, i)];
        const C value = element;
        if (value - value != 0) { // 0 for a finite number, else NaN.
            *found_inf = 1.0f;
        }
        element = value * factor;
    }
}

#define AMP_UNSCALE(suffix, T)                                                                                \
    extern "C" __global__ void amp_unscale_##suffix(INPUT(float, inv_scale), OUTPUT(T, grad),                 \
                                                    OUTPUT(float, found_inf)) {                               \
        amp_unscale(READ(inv_scale), grad, grad_view, found_inf);                                             \
    }

AMP_UNSCALE(f32, float)
AMP_UNSCALE(f64, double)
AMP_UNSCALE(bf16, bf16)

// Reduces the scale if infinite or NaN gradients were found, and increases it after a number of steps without,
// as long as it stays finite. The scale stays on the device: the host need not wait to know it.
extern "C" __global__ void amp_update_scale(INPUT(float, found_inf), OUTPUT(float, scale),
                                            OUTPUT(int, growth_tracker), long long growth_interval,
                                            double growth_factor, double backoff_factor) {
    if (first_element() > 0) {
        return;
    }
    if (READ(found_inf)[0] != 0.0f) {
        *scale = (float)(*scale * backoff_factor);
        *growth_tracker = 0;
    } else if (*growth_tracker + 1 == growth_interval) {
        const float grown = (float)(*scale * growth_factor);
        if (grown - grown == 0.0f) {
            *scale = grown;
        }
        *growth_tracker = 0;
    } else {
        *growth_tracker += 1;
    }
}
