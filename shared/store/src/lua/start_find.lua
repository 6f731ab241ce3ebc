#!lua
-- What a start would be told before anything is decided about it. `start_look.lua` is put in front of it. Writes nothing.
--
-- KEYS and ARGV: see `start_look.lua`
--
-- Returns {"open"}, {"replayed", run, state}, {"duplicate", run, state}, {"conflict"}, {"other_target"}, {"revoked"},
-- {"budget_exceeded", calls} or {"calls_exceeded"}.

return look() or { "open" }
