-- KEYS: record. ARGV: epoch it is taken from, new owner. Who asks again after a lost answer gets it again.
local held = redis.call('HMGET', KEYS[1], 'e', 'o')
if not held[1] then return 0 end
local next = ARGV[1] + 1
if tonumber(held[1]) == next and held[2] == ARGV[2] then return next end
if held[1] ~= ARGV[1] then return -1 end
-- The first write is one that a full server takes, and so it takes the others.
redis.call('HDEL', KEYS[1], 'o')
redis.call('HSET', KEYS[1], 'e', next, 'o', ARGV[2])
return next
