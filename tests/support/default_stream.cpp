#include <cuda.h>
#include <cupti.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

// A library for the variable CUDA_INJECTION64_PATH: ends a program that gives work to the default stream,
// which waits for all other streams, and they for it. The tests use a stream of their own, so that is a
// mistake of the library.

namespace {

bool is_default(CUstream stream) {
  return stream == nullptr || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
}

/// The stream of a call, where it has one.
template <class Parameters>
bool uses_default(const CUpti_CallbackData& call) {
  return is_default(static_cast<const Parameters*>(call.functionParams)->hStream);
}

bool uses_default_stream(CUpti_CallbackId id, const CUpti_CallbackData& call) {
  switch (id) {
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel:
      return uses_default<cuLaunchKernel_params>(call);
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx:
      return is_default(static_cast<const cuLaunchKernelEx_params*>(call.functionParams)->config->hStream);
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel:
      return uses_default<cuLaunchCooperativeKernel_params>(call);
    case CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch:
      return uses_default<cuGraphLaunch_params>(call);
    case CUPTI_DRIVER_TRACE_CBID_cuMemcpyAsync:
      return uses_default<cuMemcpyAsync_params>(call);
    case CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2:
      return uses_default<cuMemcpyHtoDAsync_v2_params>(call);
    case CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoHAsync_v2:
      return uses_default<cuMemcpyDtoHAsync_v2_params>(call);
    case CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoDAsync_v2:
      return uses_default<cuMemcpyDtoDAsync_v2_params>(call);
    case CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async:
      return uses_default<cuMemsetD8Async_params>(call);
    case CUPTI_DRIVER_TRACE_CBID_cuMemsetD32Async:
      return uses_default<cuMemsetD32Async_params>(call);
    case CUPTI_DRIVER_TRACE_CBID_cuMemAllocAsync:
      return uses_default<cuMemAllocAsync_params>(call);
    case CUPTI_DRIVER_TRACE_CBID_cuMemAllocFromPoolAsync:
      return uses_default<cuMemAllocFromPoolAsync_params>(call);
    case CUPTI_DRIVER_TRACE_CBID_cuMemFreeAsync:
      return uses_default<cuMemFreeAsync_params>(call);
    case CUPTI_DRIVER_TRACE_CBID_cuMemcpy:
    case CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoD_v2:
    case CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoH_v2:
    case CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoD_v2:
    case CUPTI_DRIVER_TRACE_CBID_cuMemsetD8_v2:
    case CUPTI_DRIVER_TRACE_CBID_cuMemsetD32_v2:
      return true;
    default:  // the compiler of a user who asks for it gives each thread a default stream of its own
      return std::strstr(call.functionName, "_ptsz") != nullptr;
  }
}

void CUPTIAPI watch(void*, CUpti_CallbackDomain, CUpti_CallbackId id, const void* data) {
  const auto& call = *static_cast<const CUpti_CallbackData*>(data);
  if (call.callbackSite != CUPTI_API_ENTER || !uses_default_stream(id, call)) return;
  std::fprintf(stderr, "default_stream: %s%s%s\n", call.functionName,
               call.symbolName != nullptr ? " of " : "", call.symbolName != nullptr ? call.symbolName : "");
  std::abort();
}

}  // namespace

/// Called by the driver when it is initialised.
extern "C" int InitializeInjection() {
  CUpti_SubscriberHandle subscriber;
  const bool good = cuptiSubscribe(&subscriber, watch, nullptr) == CUPTI_SUCCESS &&
                    cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API) == CUPTI_SUCCESS;
  if (!good) {
    std::fprintf(stderr, "default_stream: CUPTI cannot watch\n");
    std::abort();
  }
  return 1;
}
