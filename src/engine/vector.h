// No include guard on purpose: included once by each kernels_<isa>.cc inside its own namespace.
// Sixteen floats as a compiler vector: gcc maps it to one AVX-512, two AVX or four SSE registers.

typedef float V __attribute__((vector_size(64)));
typedef std::int32_t VI __attribute__((vector_size(64)));
typedef std::uint32_t VU __attribute__((vector_size(64)));
typedef float VLoose __attribute__((vector_size(64), aligned(4), may_alias));

constexpr std::int64_t kLanes = 16;

inline V load(const float* p) { return *reinterpret_cast<const VLoose*>(p); }
inline void store(float* p, V v) { *reinterpret_cast<VLoose*>(p) = v; }
inline V splat(float x) { return V{} + x; }
inline V load_part(const float* p, std::int64_t count) {
  V v{};
  __builtin_memcpy(&v, p, static_cast<std::size_t>(count) * sizeof(float));
  return v;
}
inline void store_part(float* p, V v, std::int64_t count) {
  __builtin_memcpy(p, &v, static_cast<std::size_t>(count) * sizeof(float));
}

// Calls body(offset, lanes) over [0, count): whole vectors first, the rest once. `lanes` is 16 in the hot
// loop.
template <class Body>
inline void for_vectors(std::int64_t count, const Body& body) {
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) body(i, kLanes);
  if (i < count) body(i, count - i);
}
inline V load_lanes(const float* p, std::int64_t lanes) {
  return lanes == kLanes ? load(p) : load_part(p, lanes);
}
inline void store_lanes(float* p, V v, std::int64_t lanes) {
  if (lanes == kLanes)
    store(p, v);
  else
    store_part(p, v, lanes);
}

inline float sum(V v) {
  for (int half = 8; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) v[i] += v[i + half];
  }
  return v[0];
}

inline V max(V a, V b) { return a > b ? a : b; }
inline V min(V a, V b) { return a < b ? a : b; }
inline float maximum(V v) {
  float best = v[0];
  for (int i = 1; i < kLanes; ++i) best = v[i] > best ? v[i] : best;
  return best;
}

// Lane i of the result is x where bit i of `bits` is set, else 0.
inline V keep_lanes(V x, std::uint32_t bits) {
#if defined(__AVX512F__)
  return reinterpret_cast<V>(_mm512_maskz_mov_ps(static_cast<__mmask16>(bits), reinterpret_cast<__m512>(x)));
#else
  const VU lane_bit = {1u << 0, 1u << 1, 1u << 2,  1u << 3,  1u << 4,  1u << 5,  1u << 6,  1u << 7,
                       1u << 8, 1u << 9, 1u << 10, 1u << 11, 1u << 12, 1u << 13, 1u << 14, 1u << 15};
  const VU chosen = (VU{} + bits) & lane_bit;
  return reinterpret_cast<V>(reinterpret_cast<VI>(x) & reinterpret_cast<VI>(chosen != 0));
#endif
}

// e^x to 2 ulp: x = n ln 2 + r, a degree-6 polynomial in r (Cephes expf), 2^n put into the exponent.
inline V exp(V x) {
  x = min(max(x, splat(-87.3f)), splat(88.3f));
  const V magic = splat(12582912.0f);  // 1.5 * 2^23: adding it rounds to an integer in the low bits
  const V shifted = x * splat(1.44269504088896341f) + magic;
  const V n = shifted - magic;
  const V r = (x - n * splat(0.693359375f)) - n * splat(-2.12194440e-4f);
  V p = splat(1.9875691500e-4f);
  p = p * r + splat(1.3981999507e-3f);
  p = p * r + splat(8.3334519073e-3f);
  p = p * r + splat(4.1665795894e-2f);
  p = p * r + splat(1.6666665459e-1f);
  p = p * r + splat(5.0000001201e-1f);
  p = p * r * r + r + splat(1.0f);
  const VI exponent = (reinterpret_cast<VI>(shifted) - reinterpret_cast<VI>(magic)) << 23;
  return reinterpret_cast<V>(reinterpret_cast<VI>(p) + exponent);
}
