-- KEYS: record. ARGV: epoch, slack. The index of deadlines learns of it when it looks.
local held = redis.call('HMGET', KEYS[1], 'e', 'b', 'i', 'm')
if not held[1] then return 0 end
if held[1] ~= ARGV[1] then return -1 end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- The first write is one that a full server takes, and so it takes the others.
redis.call('PEXPIREAT', KEYS[1], math.min(held[2] + held[4], now + held[3]) + ARGV[2])
redis.call('HSET', KEYS[1], 't', now)
return 1
