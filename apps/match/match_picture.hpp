#pragma once

#include "apps/shared/picture.hpp"
#include "matcher.hpp"

/// \file
/// Pictures of the results of roost match.

namespace roost::tools {

/// The query with its points, and beside it the reference with the query laid over it where it matched: edges
/// of the reference are orange, edges of the query blue, and edges of both white; the outline of the query is
/// green. The frame is green or, if there is no match, red. `side`: the most pixels on a side of the
/// reference.
picture draw_match(const grey_image& reference, const grey_image& query, const match_result& result,
                   int side = 720);

/// The query, and an outline of the reference where it was found; the frame as above. `side`: the most pixels
/// on a side of the query.
picture draw_found(const grey_image& reference, const grey_image& query, const match_result& result,
                   int side);

/// Pictures of one size in rows, as many as there are columns.
picture contact_sheet(const std::vector<picture>& pictures);

}  // namespace roost::tools
