-- KEYS: record. ARGV: epoch, how many fields are set, those with their values, then fields to take out.
local epoch = redis.call('HGET', KEYS[1], 'e')
if not epoch then return 0 end
if epoch ~= ARGV[1] then return -1 end
local last = 2 + 2 * ARGV[2]
for n = 3, last, 2 do redis.call('HSET', KEYS[1], ARGV[n], ARGV[n + 1]) end
for n = last + 1, #ARGV do redis.call('HDEL', KEYS[1], ARGV[n]) end
return 1
