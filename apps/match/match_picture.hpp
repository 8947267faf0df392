#pragma once

#include "apps/shared/picture.hpp"
#include "matcher.hpp"

/// \file
/// Pictures of what roost match found.

namespace roost::tools {

/// The query with its points, and beside it the reference, on which the query lies where it matched: edges of
/// the reference are orange, those of the query blue, and white where both are; the outline of the query is
/// green. The frame is green or, where there is no match, red. `side`: pixels that the reference has at most.
picture draw_match(const grey_image& reference, const grey_image& query, const match_result& result,
                   int side = 720);

/// The query, and an outline of the reference where it was found; the frame as above. `side`: pixels that the
/// query has at most.
picture draw_found(const grey_image& reference, const grey_image& query, const match_result& result,
                   int side);

/// Pictures of one size in rows, as many as there are columns.
picture contact_sheet(const std::vector<picture>& pictures);

}  // namespace roost::tools
