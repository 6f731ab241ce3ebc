#!lua
-- Ends a job run. `job_over.lua` is put in front of it.
--
-- KEYS, ARGV[1] to ARGV[5]: see `job_over.lua`
-- ARGV[6]  final state   ARGV[7]  code of the last error, or ""
--
-- Returns {"missing"}, {"known", state}, {"other_attempt", attempt} or {"ended"}.

if not_this_attempt then return not_this_attempt end
over(ARGV[6], ARGV[7])
return { "ended" }
