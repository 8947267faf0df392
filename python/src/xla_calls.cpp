#include <xla/ffi/api/ffi.h>

#include "bind.hpp"
#include "place.hpp"
#include "roost/ids/group_ids.hpp"
#include "roost/ids/reduce_rows.hpp"

// What compiled programs of JAX call, in capsules: see python/roost/jax. Compiled where JAX's headers are.

namespace roost::python {
namespace {

namespace ffi = xla::ffi;

template <class T>
std::span<T> span_of(const ffi::AnyBuffer& all) {
  return {reinterpret_cast<T*>(all.untyped_data()), all.element_count()};
}

ffi::Error wrong_type(const char* what) {
  return ffi::Error::InvalidArgument(std::string("roost.jax: ") + what);
}

/// f(ids) for int32 or int64.
template <class F>
ffi::Error with_ids(const ffi::AnyBuffer& ids, const F& f) {
  if (ids.element_type() == ffi::S32) return f(span_of<const std::int32_t>(ids));
  if (ids.element_type() == ffi::S64) return f(span_of<const std::int64_t>(ids));
  return wrong_type("ids that are neither int32 nor int64");
}

template <class F>
ffi::Error with_numbers(ffi::DataType type, const F& f) {
  switch (type) {
    case ffi::F32:
      return f(float());
    case ffi::F64:
      return f(double());
    case ffi::F16:
      return f(float16());
    case ffi::BF16:
      return f(bfloat16());
    case ffi::S32:
      return f(std::int32_t());
    case ffi::S64:
      return f(std::int64_t());
    default:
      return wrong_type("numbers that are neither floats nor int32 nor int64");
  }
}

/// out = input, and the rows of `source` added by id; those of ids without a row are left out, as in JAX.
template <class Place>
ffi::Error add_rows(const Place& place, ffi::AnyBuffer ids, ffi::AnyBuffer source, ffi::AnyBuffer input,
                    ffi::Result<ffi::AnyBuffer> out) {
  if (out->untyped_data() != input.untyped_data())
    place.copy(out->untyped_data(), input.untyped_data(), input.size_bytes());
  const std::size_t n = ids.element_count();
  if (n == 0 || source.element_count() == 0) return ffi::Error::Success();
  auto wrong = detail::zeros<std::uint64_t>(place, 1);
  return with_ids(ids, [&](const auto& numbers) {
    return with_numbers(source.element_type(), [&]<class Value>(Value) {
      reduce_rows(place, numbers, span_of<const Value>(source), source.element_count() / n,
                  span_of<Value>(*out), {.wrong = wrong.data()});
      return ffi::Error::Success();
    });
  });
}

template <class From, class To>
struct convert {
  const From* from;
  To* to;
  ROOST_FN void operator()(std::size_t i) const { to[i] = static_cast<To>(from[i]); }
};

template <class Place, class From>
ffi::Error write_numbers_to(const Place& place, const From* from, ffi::Result<ffi::AnyBuffer>& to) {
  return with_ids(*to, [&]<class To>(std::span<To> numbers) {
    using number = std::remove_const_t<To>;
    place.for_each(numbers.size(), convert<From, number>{from, const_cast<number*>(numbers.data())});
    return ffi::Error::Success();
  });
}

/// As roost::unique_ids, or group_keys. `size`: how many distinct ids there are, also above the room for
/// keys.
template <class Place>
ffi::Error unique(const Place& place, ffi::AnyBuffer ids, std::int64_t fill, bool by_key,
                  ffi::Result<ffi::AnyBuffer> keys, ffi::Result<ffi::AnyBuffer> inverse,
                  ffi::Result<ffi::AnyBuffer> counts, ffi::Result<ffi::AnyBuffer> size) {
  const std::size_t n = ids.element_count(), room = keys->element_count();
  array<std::int64_t, Place> wide(place, n), distinct(place, room), numbers(place, n), sums(place, room);
  array<std::uint64_t, Place> found(place, 1);
  const auto read = with_ids(ids, [&]<class Id>(std::span<Id> given) {
    place.for_each(n, convert<std::remove_const_t<Id>, std::int64_t>{given.data(), wide.data()});
    return ffi::Error::Success();
  });
  if (read.failure()) return read;
  const distinct_ids result{.keys = distinct.data(),
                            .limit = room,
                            .fill = fill,
                            .size = found.data(),
                            .inverse = numbers.data(),
                            .counts = sums.data()};
  const std::span<const std::int64_t> given(wide.data(), n);
  by_key ? group_keys(place, given, result) : unique_ids(place, given, result);
  for (const auto& [from, to] : {std::pair(distinct.data(), &keys), std::pair(numbers.data(), &inverse),
                                 std::pair(sums.data(), &counts)}) {
    if (auto error = write_numbers_to(place, from, *to); error.failure()) return error;
  }
  return write_numbers_to(place, found.data(), size);
}

/// f() with what it throws as an error of XLA.
template <class F>
ffi::Error translated(const F& f) {
  try {
    return f();
  } catch (const invalid_argument& error) {
    return ffi::Error::InvalidArgument(error.what());
  } catch (const out_of_memory& error) {
    return {ffi::ErrorCode::kResourceExhausted, error.what()};
  } catch (const std::exception& error) {
    return ffi::Error::Internal(error.what());
  }
}

template <class Binding>
auto add_binding(Binding binding) {
  return std::move(binding)
      .template Arg<ffi::AnyBuffer>()
      .template Arg<ffi::AnyBuffer>()
      .template Arg<ffi::AnyBuffer>()
      .template Ret<ffi::AnyBuffer>();
}
template <class Binding>
auto unique_binding(Binding binding) {
  return std::move(binding)
      .template Arg<ffi::AnyBuffer>()
      .template Attr<std::int64_t>("fill_value")
      .template Attr<bool>("sorted")
      .template Ret<ffi::AnyBuffer>()
      .template Ret<ffi::AnyBuffer>()
      .template Ret<ffi::AnyBuffer>()
      .template Ret<ffi::AnyBuffer>();
}

#if defined(__CUDACC__)
auto binding() { return ffi::Ffi::Bind().Ctx<ffi::PlatformStream<cudaStream_t>>(); }
constexpr auto add_now = [](cudaStream_t stream, auto... given) {
  return translated([&] { return add_rows(cuda(stream), given...); });
};
constexpr auto unique_now = [](cudaStream_t stream, auto... given) {
  return translated([&] { return unique(cuda(stream), given...); });
};
#else
auto binding() { return ffi::Ffi::Bind(); }
constexpr auto add_now = [](auto... given) {
  return translated([&] { return add_rows(call_place<host>::get(), given...); });
};
constexpr auto unique_now = [](auto... given) {
  return translated([&] { return unique(call_place<host>::get(), given...); });
};
#endif

XLA_FFI_DEFINE_HANDLER(add_rows_call, add_now, add_binding(binding()));
XLA_FFI_DEFINE_HANDLER(unique_call, unique_now, unique_binding(binding()));

}  // namespace

template <class Place>
void bind_xla_calls(nb::module_& m) {
  nb::dict calls;
  calls["add_rows"] = nb::capsule(reinterpret_cast<void*>(add_rows_call));
  calls["unique"] = nb::capsule(reinterpret_cast<void*>(unique_call));
  m.attr("xla_calls") = calls;
}

template void bind_xla_calls<ROOST_PYTHON_PLACE>(nb::module_&);

}  // namespace roost::python
