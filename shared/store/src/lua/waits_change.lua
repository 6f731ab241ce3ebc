#!lua
-- Put between `inbox_add.lua`, `messages.lua`, `waits.lua` and `run_checkpoint.lua`. Not a script of its own.
--
-- KEYS     only the prefix of the first
-- ARGV[from…to]  words of the field `waits`
--
-- Returns nothing; defines `plan_waits`, which reads, and `change_waits`, which writes.

-- What has to change so that a run waits for what is said in ARGV. A subscription that is new and for which a message is
-- kept gets that, and does not begin to wait.
local function plan_waits(run, field, from, to, project)
  local plan = { added = {}, given = {}, over = {}, run = run, project = project }
  local had, words, wanted, kept = {}, {}, {}, {}
  for word in string.gmatch(field or "", "%S+") do had[word] = true end
  for i = from, to do
    local word = ARGV[i]
    if not wanted[word] then words[#words + 1] = word end
    if not wanted[word] and not had[word] then
      local wait = wait_of(word, run)
      local last = redis.call("ZRANGE", wait.key, -1, -1, "WITHSCORES")
      if wait.digest and not kept[wait.digest] then
        local over
        kept[wait.digest], over = kept_messages(wait.digest, project)
        for _, word in ipairs(over) do plan.over[#plan.over + 1] = word end
      end
      local message = wait.digest and table.remove(kept[wait.digest], 1)
      if message then
        plan.given[#plan.given + 1] = { wait = wait, event = message[1], variables = message[2] }
      else
        wait.place = wait.digest and tonumber(last[2] or "0") + 1 or 0
        plan.added[#plan.added + 1] = wait
      end
    end
    wanted[word] = true
  end
  plan.dropped = look_at_waits(field, run, wanted)
  plan.field = table.concat(words, " ")
  return plan
end

local function change_waits(plan, to, alarms, bounds)
  for _, word in ipairs(plan.over) do forget_message(word, plan.project) end
  for _, given in ipairs(plan.given) do
    forget_message(given.wait.digest .. ":" .. given.event, plan.project)
    receive(to, given.event, message_body(given.wait.subscription, given.variables), alarms, bounds)
  end
  drop_waits(plan.dropped)
  for i, wait in ipairs(plan.added) do
    redis.call("ZADD", wait.key, int(wait.place + (wait.digest and i or 0)), wait.member)
  end
  if plan.field == "" then
    redis.call("HDEL", to.run, "waits")
  else
    redis.call("HSET", to.run, "waits", plan.field)
  end
end
