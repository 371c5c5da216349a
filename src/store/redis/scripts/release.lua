-- KEYS: record. ARGV: epoch.
local epoch = redis.call('HGET', KEYS[1], 'e')
if not epoch then return 0 end
if epoch ~= ARGV[1] then return -1 end
-- The first write is one that a full server takes, and so it takes the others.
redis.call('HDEL', KEYS[1], 'o')
redis.call('HSET', KEYS[1], 'e', ARGV[1] + 1)
return 1
