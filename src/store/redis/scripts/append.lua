-- KEYS: record, log. ARGV: epoch, slack, then ids and entries in order. The log itself refuses what is not behind it.
local held = redis.call('HMGET', KEYS[1], 'e', 'b', 'm')
if not held[1] then return 0 end
if held[1] ~= ARGV[1] then return -1 end
-- An adopter's first entry is taken by a full server too, as the change of owner was: after a write that needs no room.
if string.find(ARGV[3], '-0', -2, true) then redis.call('HDEL', KEYS[1], '') end
local first = redis.pcall('XADD', KEYS[2], ARGV[3], 'd', ARGV[4])
if type(first) == 'table' and first.err then
  if string.find(first.err, 'equal or smaller', 1, true) then return -1 end
  return first
end
for n = 5, #ARGV, 2 do redis.call('XADD', KEYS[2], ARGV[n], 'd', ARGV[n + 1]) end
if redis.call('PTTL', KEYS[2]) < 0 then redis.call('PEXPIREAT', KEYS[2], held[2] + held[3] + ARGV[2]) end
return 1
