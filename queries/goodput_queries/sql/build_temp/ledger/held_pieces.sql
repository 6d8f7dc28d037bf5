-- Pieces of attempts for each unit of this pass.
-- grain: unit, start_ms
select
    holds.unit,
    holds.hold,
    pieces.piece,
    greatest(pieces.start_ms, holds.start_ms) as start_ms,
    least(pieces.end_ms, holds.end_ms) as end_ms
from temp.holds as holds
inner join temp.pieces as pieces
    on holds.hold = pieces.hold
    and pieces.start_ms < holds.end_ms
    and pieces.end_ms > holds.start_ms
