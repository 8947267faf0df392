#include <array>

#include "catalogue.hpp"
#include "solution.hpp"

// Bright stars with names, the brightest first, at their positions in the Hipparcos catalogue.

namespace roost::tools {
namespace {

struct named_star {
  const char* name;
  float ra, dec;  // degrees
};

constexpr named_star named_stars[] = {
    {"Sirius", 101.289f, -16.713f},
    {"Canopus", 95.988f, -52.696f},
    {"Vega", 279.234f, 38.783f},
    {"Arcturus", 213.918f, 19.187f},
    {"Rigil Kentaurus", 219.920f, -60.835f},
    {"Rigel", 78.634f, -8.202f},
    {"Capella", 79.172f, 45.999f},
    {"Achernar", 24.428f, -57.237f},
    {"Procyon", 114.827f, 5.228f},
    {"Betelgeuse", 88.793f, 7.407f},
    {"Hadar", 210.956f, -60.373f},
    {"Acrux", 186.650f, -63.099f},
    {"Altair", 297.695f, 8.867f},
    {"Spica", 201.298f, -11.161f},
    {"Antares", 247.352f, -26.432f},
    {"Aldebaran", 68.980f, 16.510f},
    {"Mimosa", 191.930f, -59.689f},
    {"Fomalhaut", 344.412f, -29.622f},
    {"Pollux", 116.331f, 28.026f},
    {"Deneb", 310.358f, 45.280f},
    {"Regulus", 152.094f, 11.967f},
    {"Adhara", 104.656f, -28.972f},
    {"Shaula", 263.402f, -37.104f},
    {"Bellatrix", 81.283f, 6.350f},
    {"Castor", 113.650f, 31.889f},
    {"Elnath", 81.573f, 28.608f},
    {"Alnilam", 84.053f, -1.202f},
    {"Gacrux", 187.791f, -57.113f},
    {"Miaplacidus", 138.301f, -69.717f},
    {"Alnitak", 85.190f, -1.943f},
    {"Alnair", 332.058f, -46.961f},
    {"Alioth", 193.507f, 55.960f},
    {"Kaus Australis", 276.043f, -34.384f},
    {"Alkaid", 206.886f, 49.313f},
    {"Peacock", 306.412f, -56.735f},
    {"Mirzam", 95.675f, -17.956f},
    {"Mirfak", 51.081f, 49.861f},
    {"Menkalinan", 89.882f, 44.947f},
    {"Sargas", 264.330f, -42.998f},
    {"Alhena", 99.428f, 16.399f},
    {"Dubhe", 165.933f, 61.751f},
    {"Wezen", 107.098f, -26.393f},
    {"Avior", 125.629f, -59.510f},
    {"Saiph", 86.939f, -9.670f},
    {"Nunki", 283.816f, -26.297f},
    {"Alpheratz", 2.097f, 29.091f},
    {"Atria", 252.166f, -69.028f},
    {"Algol", 47.042f, 40.956f},
    {"Polaris", 37.946f, 89.264f},
    {"Rasalhague", 263.733f, 12.561f},
    {"Alphard", 141.897f, -8.659f},
    {"Mintaka", 83.002f, -0.299f},
    {"Denebola", 177.266f, 14.572f},
    {"Algieba", 154.992f, 19.842f},
    {"Hamal", 31.793f, 23.463f},
    {"Mirach", 17.432f, 35.621f},
    {"Kochab", 222.677f, 74.155f},
    {"Diphda", 10.897f, -17.987f},
    {"Alphecca", 233.672f, 26.715f},
    {"Almach", 30.975f, 42.330f},
    {"Mizar", 200.981f, 54.925f},
    {"Merak", 165.460f, 56.382f},
    {"Sadr", 305.557f, 40.257f},
    {"Caph", 2.292f, 59.150f},
    {"Eltanin", 269.152f, 51.489f},
    {"Schedar", 10.127f, 56.537f},
    {"Phecda", 178.457f, 53.695f},
    {"Markab", 346.190f, 15.205f},
    {"Scheat", 345.943f, 28.082f},
    {"Alderamin", 319.644f, 62.585f},
    {"Izar", 221.247f, 27.074f},
    {"Enif", 326.046f, 9.875f},
    {"Gienah", 183.952f, -17.542f},
    {"Zubeneschamali", 229.252f, -9.383f},
    {"Zosma", 168.527f, 20.524f},
    {"Menkar", 45.570f, 4.090f},
    {"Arneb", 83.183f, -17.822f},
    {"Sheratan", 28.660f, 20.808f},
    {"Ruchbah", 21.453f, 60.235f},
    {"Algenib", 3.309f, 15.184f},
    {"Zubenelgenubi", 222.720f, -16.042f},
    {"Unukalhai", 236.067f, 6.426f},
    {"Porrima", 190.417f, -1.450f},
    {"Cor Caroli", 194.008f, 38.318f},
    {"Alcyone", 56.871f, 24.105f},
    {"Tarazed", 296.565f, 10.613f},
    {"Algorab", 187.467f, -16.515f},
    {"Rastaban", 262.608f, 52.301f},
    {"Vindemiatrix", 195.545f, 10.959f},
    {"Albireo", 292.680f, 27.960f},
    {"Meissa", 83.784f, 9.934f},
    {"Megrez", 183.856f, 57.033f},
    {"Atlas", 57.291f, 24.054f},
    {"Thuban", 211.098f, 64.376f},
    {"Electra", 56.219f, 24.113f},
    {"Maia", 56.457f, 24.368f},
    {"Alshain", 298.828f, 6.408f},
    {"Merope", 56.582f, 23.948f},
    {"Taygeta", 56.302f, 24.467f},
    {"Pleione", 57.297f, 24.137f},
};

}  // namespace

std::string_view known_name(sky_vector direction) {
  static const auto directions = [] {
    std::array<sky_vector, std::size(named_stars)> all{};
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = direction_of(named_stars[i].ra, named_stars[i].dec);
    return all;
  }();
  constexpr float near = 1e-4f;  // radians: some 20 seconds of arc
  for (std::size_t i = 0; i < directions.size(); ++i) {
    const sky_vector apart = directions[i] - direction;
    if (dot(apart, apart) < near * near) return named_stars[i].name;
  }
  return {};
}

}  // namespace roost::tools
